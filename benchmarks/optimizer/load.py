"""How large a scenario is on each host: its window, its steps, its rate, and how often plans are reviewed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Load:
    """Seconds of the query's window, of a step and between two reviews, and rows a second of a full-rate stream."""

    window: float
    tick: float
    review: float
    rate: float


LOADS = {
    "embedded": Load(window=4.0, tick=2.0, review=1.5, rate=10_000),
    "spark": Load(window=4.0, tick=4.0, review=3.5, rate=10_000),
}
"""The full measurement: three full-rate streams bring 60,000 rows to a step, twice that on Spark.

Reviews are due in each step: the last rows of two steps may be a little less than it apart.
"""

QUICK = {
    "embedded": Load(window=4.0, tick=2.0, review=4.0, rate=50),
    "spark": Load(window=4.0, tick=12.0, review=12.0, rate=50),
}
"""Shows that everything runs and agrees; its figures mean nothing."""
