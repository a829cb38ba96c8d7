"""The rare stream becomes the frequent one."""

from __future__ import annotations

from benchmarks.optimizer.scenario import Scenario, turns
from benchmarks.plan_change.scenario import Feed, always

KEYS = {"k": {"all": always(1.0)}}

RATE_FLIP = Scenario(
    name="rate_flip",
    title="of four streams A is rare and C frequent; from the middle on it is the other way round",
    kind="drifting",
    feeds={
        "A": Feed(turns((0, 0.05), (15, 1.0)), KEYS),
        "B": Feed(always(1.0), KEYS),
        "C": Feed(turns((0, 1.0), (15, 0.05)), KEYS),
        "D": Feed(always(0.1), KEYS),
    },
    regions={"all": 5.0},
    where="A.k = B.k AND B.k = C.k AND C.k = D.k",
    looks=(4.0, 19.0),
    length=30.0,
    scale=0.7,
    seed=2,
)
