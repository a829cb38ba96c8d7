"""How fast a scenario runs on each host: its window, its ticks and its rate."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Load:
    """Seconds of the query's window and of a tick, and rows a second of a full-rate stream.

    What has arrived is handed over once a tick, or at once where the last step took longer. What came long before the
    first change of plan only fills the window: up to `lead` seconds before it, rows are handed over in so many
    `pieces`, without waiting. `budget` is for strategies that fill states in spare time: comparisons a step.
    """

    window: float
    tick: float
    lead: float
    pieces: int
    rate: float
    budget: int


LOADS = {
    "embedded": Load(window=7.0, tick=0.05, lead=0.6, pieces=15, rate=30_000, budget=20_000),
    "spark": Load(window=6.0, tick=1.0, lead=2.0, pieces=3, rate=20_000, budget=200_000),
}
"""The full measurement: rates at which the old plan takes a third to a half of the time once the data have drifted."""

QUICK = {
    "embedded": Load(window=0.6, tick=0.02, lead=0.1, pieces=5, rate=5_000, budget=1_000),
    "spark": Load(window=2.0, tick=0.5, lead=1.0, pieces=2, rate=2_000, budget=20_000),
}
"""Shows that everything runs and agrees; its times mean nothing."""
