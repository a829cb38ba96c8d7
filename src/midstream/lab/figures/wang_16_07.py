"""Wang Fig. 16.7: a ring adapted at runtime, small join."""

from __future__ import annotations

from typing import ClassVar

from midstream.lab.figure import Claim
from midstream.lab.ring_over_time import TIMES_OVER, OverTime

SOURCE = "Wang §16.5, Fig. 16.7"


class Wang1607(OverTime):
    """Twice and three times the rate, small join, selectivity 0.2."""

    name: ClassVar[str] = "wang_16_07"
    title: ClassVar[str] = "a ring whose load grows, small join"
    source: ClassVar[str] = SOURCE
    setting: ClassVar[str] = f"{TIMES_OVER} Small join, selectivity 0.2."
    claim: ClassVar[Claim] = Claim("So it does with the small join, at twice and at three times the rate.", SOURCE)
    join: ClassVar[str] = "small join"
    selectivity: ClassVar[float] = 0.2
    panels: ClassVar[dict[str, float]] = {"twice the rate": 2.0, "three times the rate": 3.0}
