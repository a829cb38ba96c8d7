"""A nervous optimiser: there, back, there again, each change while the one before is still under way."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.plan_change.scenario import Change
from benchmarks.plan_change.scenarios.selectivity_flip import AB_FIRST, BC_FIRST, SELECTIVITY_FLIP

FLAPPING = replace(
    SELECTIVITY_FLIP,
    name="flapping",
    title="the drift of selectivity_flip; the plan goes there, back, there, back, and there, a fifth of a window apart",
    changes=tuple(
        Change(at, plan)
        for at, plan in zip((1.5, 1.7, 1.9, 2.1, 2.3), (BC_FIRST, AB_FIRST, BC_FIRST, AB_FIRST, BC_FIRST), strict=True)
    ),
    length=3.55,
    seed=1,
)
