"""Selectivities cross slowly along a chain of four."""

from __future__ import annotations

from benchmarks.optimizer.scenario import Scenario
from benchmarks.plan_change.scenario import Feed, Profile, always

RISING = Profile(((0.0, 0.02), (8.0, 0.02), (22.0, 0.9)))
FALLING = Profile(((0.0, 0.9), (8.0, 0.9), (22.0, 0.02)))

GRADUAL_DRIFT = Scenario(
    name="gradual_drift",
    title="along a chain of four streams A ⋈ B turns slowly from rare to frequent, C ⋈ D the other way",
    kind="drifting",
    feeds={
        "A": Feed(always(0.6), {"x": {"all": always(0.1), "ab": RISING}}),
        "B": Feed(always(0.6), {"x": {"all": always(0.1), "ab": always(0.9)}, "y": {"all": always(0.3)}}),
        "C": Feed(always(0.6), {"y": {"all": always(0.3)}, "z": {"all": always(0.1), "cd": always(0.9)}}),
        "D": Feed(always(0.6), {"z": {"all": always(0.1), "cd": FALLING}}),
    },
    regions={"all": 10.0, "ab": 8.0, "cd": 8.0},
    where="A.x = B.x AND B.y = C.y AND C.z = D.z",
    looks=(4.0, 15.0, 26.0),
    length=30.0,
    seed=3,
)
