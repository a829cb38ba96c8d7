"""Selectivities cross slowly along a chain of four; the plan follows in two moves."""

from __future__ import annotations

from benchmarks.plan_change.scenario import Change, Feed, Forms, Profile, Scenario, always

RISING = Profile(((0.0, 0.02), (0.9, 0.02), (2.1, 0.9)))
FALLING = Profile(((0.0, 0.9), (0.9, 0.9), (2.1, 0.02)))

GRADUAL_DRIFT = Scenario(
    name="gradual_drift",
    title="along a chain of four streams A ⋈ B turns slowly from rare to frequent, C ⋈ D the other way; two changes",
    feeds={
        "A": Feed(always(0.6), {"x": {"all": always(0.1), "ab": RISING}}),
        "B": Feed(always(0.6), {"x": {"all": always(0.1), "ab": always(0.9)}, "y": {"all": always(0.3)}}),
        "C": Feed(always(0.6), {"y": {"all": always(0.3)}, "z": {"all": always(0.1), "cd": always(0.9)}}),
        "D": Feed(always(0.6), {"z": {"all": always(0.1), "cd": FALLING}}),
    },
    regions={"all": 10.0, "ab": 8.0, "cd": 8.0},
    where="A.x = B.x AND B.y = C.y AND C.z = D.z",
    old=Forms("(((A B) C) D)", "[A: B C D | B: A C D | C: B A D | D: C B A]"),
    changes=(
        Change(1.5, Forms("((A B) (C D))", "[A: B C D | B: A C D | C: D B A | D: C B A]")),
        Change(1.9, Forms("(A (B (C D)))", "[A: B C D | B: C D A | C: D B A | D: C B A]")),
    ),
    drift=1.5,
    length=3.15,
)
