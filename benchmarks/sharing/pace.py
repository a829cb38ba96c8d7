"""How long a run is: what fills the windows, what is left out of the measure, and what is measured."""

from __future__ import annotations

from dataclasses import dataclass

MODES = ("off", "pull_up", "push_down", "mem_opt", "cpu_opt", "auto")
"""Every way to share: `off` gives each query a join of its own (Wang's *isolated*)."""

ISOLATED, BEST = "off", "cpu_opt"
PARTITION = "push_down"
"""Splits streams by filter; where there is none it is `pull_up`."""


@dataclass(frozen=True)
class Pace:
    """Steps of a run: `history` in steps of so many seconds, then steps of `tick` seconds to settle and to measure.

    A contestant that has worked longer than `budget` seconds in a run does no further step.
    """

    rate: int
    history: tuple[float, ...] = (5, 5, 5, 5, 5)
    settle: int = 6
    measured: int = 8
    tick: float = 1.0
    budget: float = 60.0

    def ticks(self) -> tuple[float, ...]:
        """The seconds of each step, in order."""
        return (*self.history, *[self.tick] * (self.settle + self.measured))


PACE = Pace(rate=80, measured=15)
"""Wang's highest rate, 80 tuples a second of each stream, and windows full before anything is measured."""

MANY = Pace(rate=20, history=(10, 10, 8), settle=3, measured=5)
"""Wang's lowest rate, for 1,000 queries: what they want in total is large nevertheless."""

QUICK = Pace(rate=20, history=(25,), settle=1, measured=2)
