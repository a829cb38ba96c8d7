"""Wang Fig. 16.6: a ring adapted at runtime, middle join."""

from __future__ import annotations

from typing import ClassVar

from midstream.lab.figure import Claim
from midstream.lab.ring_over_time import TIMES_OVER, OverTime

SOURCE = "Wang §16.5, Fig. 16.6"


class Wang1606(OverTime):
    """Twice the rate, middle join, selectivity 0.05."""

    name: ClassVar[str] = "wang_16_06"
    title: ClassVar[str] = "a ring whose load grows, middle join"
    source: ClassVar[str] = SOURCE
    setting: ClassVar[str] = f"{TIMES_OVER} Middle join, selectivity 0.05."
    claim: ClassVar[Claim] = Claim("Runtime adaptation makes the system more stable and robust to changes.", SOURCE)
    join: ClassVar[str] = "middle join"
    selectivity: ClassVar[float] = 0.05
    panels: ClassVar[dict[str, float]] = {"twice the rate": 2.0}
