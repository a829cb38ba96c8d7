"""Drawn sequences of changes on the embedded engine: no row is kept where what comes later does not look for it."""

from __future__ import annotations

import pytest

from tests.drawing import FIFTHS, SOAK
from tests.property.sequences import drawn, run_embedded

SEEDS = range(1000 if SOAK else 60)


@pytest.mark.property
@pytest.mark.timeout(7200)
def test_every_step_is_the_oracle_s(fifth: int) -> None:
    for seed in SEEDS[fifth :: len(FIFTHS)]:
        run_embedded(drawn(seed))
