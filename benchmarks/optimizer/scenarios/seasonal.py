"""Day and night: the streams swing between two ways to be, over and over."""

from __future__ import annotations

from benchmarks.optimizer.scenario import Scenario, season
from benchmarks.plan_change.scenario import Feed, always

PERIOD, LENGTH = 24.0, 48.0
AB = season(0.0, 0.9, PERIOD, LENGTH, begins="low")
BC = season(0.0, 0.9, PERIOD, LENGTH, begins="high")
RARE = {"all": always(0.1)}

SEASONAL = Scenario(
    name="seasonal",
    title="A ⋈ B and B ⋈ C swing in turns between rare and frequent, two periods of 24 windows",
    kind="drifting",
    feeds={
        "A": Feed(always(1.0), {"x": RARE | {"ab": AB}}),
        "B": Feed(always(1.0), {"x": RARE | {"ab": always(0.8)}, "y": RARE | {"bc": always(0.8)}}),
        "C": Feed(always(1.0), {"y": RARE | {"bc": BC}}),
    },
    regions={"all": 20.0, "ab": 12.0, "bc": 12.0},
    where="A.x = B.x AND B.y = C.y",
    looks=(2.0, 13.0),
    length=LENGTH,
    seed=5,
)
