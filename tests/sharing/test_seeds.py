"""Random sets that failed once: what is drawn from these seeds has shown a mistake that no fixed case shows."""

from __future__ import annotations

import pytest

from tests.sharing.draw import case
from tests.sharing.drive import run
from tests.sharing.judge import Judge

SEEDS = {
    "parts come in the step of a migration": 1_512,
    "combinations outlive the rows they are made of": 1_001_170,
    "a part outlives its base rows where a window grew": 328_835,
}


@pytest.mark.parametrize("seed", SEEDS.values(), ids=SEEDS)
def test_a_set_that_failed_once(seed: int) -> None:
    drawn = case(seed)
    Judge(drawn, run(drawn)).check()
