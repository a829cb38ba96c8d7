"""Nothing drifts: whatever an optimizer does here is for nothing."""

from __future__ import annotations

from benchmarks.optimizer.scenario import Scenario
from benchmarks.plan_change.scenario import Feed, always

STEADY = Scenario(
    name="steady",
    title="nothing drifts, and the plan is the best one from the beginning",
    kind="steady",
    feeds={
        "A": Feed(always(1.0), {"k": {"all": always(0.5)}}),
        "B": Feed(always(0.5), {"k": {"all": always(0.5), "bc": always(0.4)}}),
        "C": Feed(always(0.5), {"k": {"all": always(0.5), "bc": always(0.4)}}),
    },
    regions={"all": 12.0, "bc": 16.0},
    where="A.k = B.k AND B.k = C.k",
    looks=(4.0,),
    length=30.0,
    seed=1,
)
