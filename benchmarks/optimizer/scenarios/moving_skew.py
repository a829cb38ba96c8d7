"""Skew that moves: few keys have many rows, first between one pair of streams, then between another."""

from __future__ import annotations

from benchmarks.optimizer.scenario import Scenario, turns
from benchmarks.plan_change.scenario import Feed, always

HOT = 0.06
"""The share of rows with hot keys, where there are some."""

REST = {"all": always(0.35)}
AB = REST | {"hot": turns((0, HOT), (13, 0.0))}
BC = REST | {"hot": turns((0, 0.0), (13, HOT), (26, 0.0))}
CD = REST | {"hot": turns((0, 0.0), (26, HOT))}

MOVING_SKEW = Scenario(
    name="moving_skew",
    title="along a chain of four streams few keys are hot between A and B, later between B and C, then C and D",
    kind="drifting",
    feeds={
        "A": Feed(always(0.7), {"x": AB}),
        "B": Feed(always(0.7), {"x": AB, "y": BC}),
        "C": Feed(always(0.7), {"y": BC, "z": CD}),
        "D": Feed(always(0.7), {"z": CD}),
    },
    regions={"hot": 1000.0, "all": 6.0},
    where="A.x = B.x AND B.y = C.y AND C.z = D.z",
    looks=(4.0, 17.0, 30.0),
    length=39.0,
    seed=7,
)
