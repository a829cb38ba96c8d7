"""Three plans, each the best one for a while."""

from __future__ import annotations

from benchmarks.optimizer.scenario import Scenario, turns
from benchmarks.plan_change.scenario import Feed, always

AB = turns((0, 0.0), (13, 0.4), (26, 0.4))
BC = turns((0, 0.4), (13, 0.0), (26, 0.4))
AC = turns((0, 0.4), (13, 0.4), (26, 0.0))

THREE_WAY_FLIP = Scenario(
    name="three_way_flip",
    title="of three streams the pair that finds few partners is first A and B, then B and C, then A and C",
    kind="drifting",
    feeds={
        "A": Feed(always(1.0), {"k": {"all": always(0.1), "ab": AB, "ac": AC}}),
        "B": Feed(always(1.0), {"k": {"all": always(0.1), "ab": AB, "bc": BC}}),
        "C": Feed(always(1.0), {"k": {"all": always(0.1), "bc": BC, "ac": AC}}),
    },
    regions={"all": 20.0, "ab": 40.0, "bc": 40.0, "ac": 40.0},
    where="A.k = B.k AND B.k = C.k",
    looks=(4.0, 17.0, 30.0),
    length=39.0,
    seed=6,
)
