"""Selectivities cross slowly along a chain of four; the plan follows in two moves."""

from __future__ import annotations

from benchmarks.plan_change.scenario import Change, Feed, Forms, Profile, Scenario, always

REGIONS = {"all": 10.0, "ab": 8.0, "cd": 8.0}
WHERE = "A.x = B.x AND B.y = C.y AND C.z = D.z"


def crossing(begins: float, ends: float) -> dict[str, Feed]:
    """The four streams: A ⋈ B turns from rare to frequent between two times, C ⋈ D the other way."""
    rising = Profile(((0.0, 0.02), (begins, 0.02), (ends, 0.9)))
    falling = Profile(((0.0, 0.9), (begins, 0.9), (ends, 0.02)))
    return {
        "A": Feed(always(0.6), {"x": {"all": always(0.1), "ab": rising}}),
        "B": Feed(always(0.6), {"x": {"all": always(0.1), "ab": always(0.9)}, "y": {"all": always(0.3)}}),
        "C": Feed(always(0.6), {"y": {"all": always(0.3)}, "z": {"all": always(0.1), "cd": always(0.9)}}),
        "D": Feed(always(0.6), {"z": {"all": always(0.1), "cd": falling}}),
    }


GRADUAL_DRIFT = Scenario(
    name="gradual_drift",
    title="along a chain of four streams A ⋈ B turns slowly from rare to frequent, C ⋈ D the other way; two changes",
    feeds=crossing(0.9, 2.1),
    regions=REGIONS,
    where=WHERE,
    old=Forms("(((A B) C) D)", "[A: B C D | B: A C D | C: B A D | D: C B A]"),
    changes=(
        Change(1.5, Forms("((A B) (C D))", "[A: B C D | B: A C D | C: D B A | D: C B A]")),
        Change(1.9, Forms("(A (B (C D)))", "[A: B C D | B: C D A | C: D B A | D: C B A]")),
    ),
    drift=1.5,
    length=3.15,
)
