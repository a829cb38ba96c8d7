"""Selectivities cross slowly along a chain of four."""

from __future__ import annotations

from benchmarks.optimizer.scenario import Scenario
from benchmarks.plan_change.scenarios.gradual_drift import REGIONS, WHERE, crossing

GRADUAL_DRIFT = Scenario(
    name="gradual_drift",
    title="along a chain of four streams A ⋈ B turns slowly from rare to frequent, C ⋈ D the other way",
    kind="drifting",
    feeds=crossing(8.0, 22.0),
    regions=REGIONS,
    where=WHERE,
    looks=(4.0, 15.0, 26.0),
    length=30.0,
    seed=3,
)
