"""A stream that stops: nothing can come of the joins with it, whatever the others join in vain."""

from __future__ import annotations

from benchmarks.optimizer.scenario import Scenario, turns
from benchmarks.plan_change.scenario import Feed, always

STOPPING_STREAM = Scenario(
    name="stopping_stream",
    title="of five streams E brings nothing any more from a third of the time on, and comes back for the last third",
    kind="drifting",
    feeds={
        "A": Feed(always(0.5), {"k": {"all": always(0.8)}}),
        "B": Feed(always(0.5), {"k": {"all": always(0.8)}}),
        "C": Feed(always(0.5), {"k": {"all": always(0.5)}}),
        "D": Feed(always(0.5), {"k": {"all": always(0.5)}}),
        "E": Feed(turns((0, 1.0), (12, 0.0), (28, 1.0)), {"k": {"all": always(1.0)}}),
    },
    regions={"all": 6.0},
    where="A.k = B.k AND B.k = C.k AND C.k = D.k AND D.k = E.k",
    looks=(4.0, 20.0),
    length=40.0,
    scale=0.6,
    seed=8,
)
