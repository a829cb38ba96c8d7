"""One key becomes hot in the two streams that the best plan has joined first."""

from __future__ import annotations

from benchmarks.optimizer.scenario import Scenario, turns
from benchmarks.plan_change.scenario import Feed, always

HOT = turns((0, 0.0), (15, 0.01))

HOT_KEY = Scenario(
    name="hot_key",
    title="one key becomes hot in A and B, which were joined first",
    kind="drifting",
    feeds={
        "A": Feed(always(1.0), {"x": {"hot": HOT, "all": always(0.1)}}),
        "B": Feed(always(1.0), {"x": {"hot": HOT, "all": always(0.5)}, "y": {"all": always(0.7)}}),
        "C": Feed(always(1.0), {"y": {"all": always(0.7)}}),
    },
    regions={"hot": float("inf"), "all": 4.0},
    where="A.x = B.x AND B.y = C.y",
    looks=(4.0, 19.0),
    length=30.0,
    scale=1.0,
    seed=4,
)
