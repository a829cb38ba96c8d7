"""The rare stream becomes the frequent one."""

from __future__ import annotations

from benchmarks.optimizer.scenario import Scenario, turns
from benchmarks.plan_change.scenario import Feed, always

ALL = {"all": always(1.0)}

RATE_FLIP = Scenario(
    name="rate_flip",
    title="of a chain of four streams A is rare and D frequent; from the middle on it is the other way round",
    kind="drifting",
    feeds={
        "A": Feed(turns((0, 0.05), (15, 1.0)), {"x": ALL}),
        "B": Feed(always(0.6), {"x": ALL, "y": ALL}),
        "C": Feed(always(0.6), {"y": ALL, "z": ALL}),
        "D": Feed(turns((0, 1.0), (15, 0.05)), {"z": ALL}),
    },
    regions={"all": 3.0},
    where="A.x = B.x AND B.y = C.y AND C.z = D.z",
    looks=(4.0, 19.0),
    length=30.0,
    scale=0.7,
    seed=2,
)
