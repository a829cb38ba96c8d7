"""Drawn sequences of changes on the embedded engine: no row is kept where what comes later does not look for it."""

from __future__ import annotations

import pytest

from tests.drawing import PROFILE
from tests.property.sequences import drawn, run_embedded

SEEDS = range({"test": 60, "soak": 1000, "quick": 6}[PROFILE])


@pytest.mark.property
@pytest.mark.parametrize("seed", SEEDS)
def test_every_step_is_the_oracle_s(seed: int) -> None:
    run_embedded(drawn(seed))
