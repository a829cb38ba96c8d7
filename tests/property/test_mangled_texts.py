"""Texts that are nearly queries are queries, or are refused with a place and a remedy: never a fault.

Words of the texts in the docs, examples and tests are left out, doubled, exchanged and mixed with words of others.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.drawing import FIFTHS, SOAK
from tests.texts import ends_well, mangled, written

pytestmark = [pytest.mark.property, pytest.mark.timeout(7200)]

TEXTS = (40_000 if SOAK else 500) // len(FIFTHS)


def test_a_mangled_text_is_answered_or_refused_with_place_and_remedy(fifth: int) -> None:
    """The texts change with the docs and tests; `python -m tests.texts` tries many more."""
    rng, texts = Random(fifth), written()
    for _ in range(TEXTS):
        text = mangled(rng.choice(texts), rng)
        try:
            ends_well(text, more=True)
        except Exception as fault:
            pytest.fail(f"{text!r}\n{fault}")
