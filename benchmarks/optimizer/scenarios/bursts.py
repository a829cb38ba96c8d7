"""Bursts: for a moment another plan is the better one, and then not any more. The plan should stay as it is."""

from __future__ import annotations

from itertools import chain

from benchmarks.optimizer.scenario import Scenario, turns
from benchmarks.plan_change.scenario import Feed, Profile, always

LENGTH = 32.0


def bursting(between: float, amid: float) -> Profile:
    """A number that is another one for a third of a window every fourth window."""
    bursts = (((at, amid), (at + 0.3, between)) for at in range(4, round(LENGTH), 4))
    return turns((0, between), *chain.from_iterable(bursts))


BURSTS = Scenario(
    name="bursts",
    title="every fourth window A has three times the rows for a third of a window; its plan should not change",
    kind="steady",
    feeds={
        "A": Feed(bursting(0.6, 1.8), {"x": {"all": always(0.3)}}),
        "B": Feed(always(0.6), {"x": {"all": always(0.3)}, "y": {"all": always(0.1), "bc": always(0.8)}}),
        "C": Feed(always(0.6), {"y": {"all": always(0.1), "bc": always(0.4)}}),
    },
    regions={"all": 12.0, "bc": 12.0},
    where="A.x = B.x AND B.y = C.y",
    looks=(3.9,),
    length=LENGTH,
    seed=9,
)
