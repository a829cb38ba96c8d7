"""Random cases that are kept, because together they reach all code that any case reached (tests/corpus.py)."""

from __future__ import annotations

import pytest

from tests.corpus import CORPUS, kept, suites

pytestmark = [pytest.mark.property, pytest.mark.timeout(600)]

SUITES = suites()


@pytest.mark.parametrize(("suite", "number"), kept())
def test_a_kept_case(suite: str, number: int) -> None:
    SUITES[suite](number)


def test_there_are_cases_of_most_suites() -> None:
    assert CORPUS.exists()
    assert len({suite for suite, _ in kept()}) > len(SUITES) / 2
