"""An adversary: as soon as a plan has been found to be the better one, it is not any more."""

from __future__ import annotations

from benchmarks.optimizer.scenario import Scenario, turns
from benchmarks.plan_change.scenario import Feed, always

TURN, LENGTH = 1.5, 36.0
TIMES = [TURN * n for n in range(round(LENGTH / TURN))]
AB = turns(*((at, 0.8 * (n % 2)) for n, at in enumerate(TIMES)))
BC = turns(*((at, 0.8 * (1 - n % 2)) for n, at in enumerate(TIMES)))
RARE = {"all": always(0.1)}

FLAPPING = Scenario(
    name="flapping",
    title="selectivities flip every one and a half windows, about when a policy has moved",
    kind="flapping",
    feeds={
        "A": Feed(always(1.0), {"x": RARE | {"ab": AB}}),
        "B": Feed(always(1.0), {"x": RARE | {"ab": always(0.8)}, "y": RARE | {"bc": always(0.8)}}),
        "C": Feed(always(1.0), {"y": RARE | {"bc": BC}}),
    },
    regions={"all": 20.0, "ab": 10.0, "bc": 10.0},
    where="A.x = B.x AND B.y = C.y",
    looks=(1.5, 3.0),
    length=LENGTH,
    seed=10,
)
