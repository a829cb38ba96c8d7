"""At one moment the selective join becomes the wide one, and the other way round."""

from __future__ import annotations

from benchmarks.optimizer.scenario import Scenario, turns
from benchmarks.plan_change.scenario import Feed, always

RARE = {"all": always(0.1)}

SELECTIVITY_FLIP = Scenario(
    name="selectivity_flip",
    title="B's rows find many of C's and few of A's; from the middle on it is the other way round",
    kind="drifting",
    feeds={
        "A": Feed(always(1.0), {"x": RARE | {"ab": turns((0, 0.0), (15, 0.8))}}),
        "B": Feed(always(1.0), {"x": RARE | {"ab": always(0.8)}, "y": RARE | {"bc": always(0.8)}}),
        "C": Feed(always(1.0), {"y": RARE | {"bc": turns((0, 0.8), (15, 0.0))}}),
    },
    regions={"all": 20.0, "ab": 10.0, "bc": 10.0},
    where="A.x = B.x AND B.y = C.y",
    looks=(4.0, 19.0),
    length=30.0,
)
