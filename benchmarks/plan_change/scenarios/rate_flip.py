"""The rare stream becomes the frequent one."""

from __future__ import annotations

from benchmarks.plan_change.scenario import Change, Feed, Forms, Scenario, always, flip

KEYS = {"k": {"all": always(1.0)}}

RATE_FLIP = Scenario(
    name="rate_flip",
    title="of four streams A is rare and C frequent; from one moment on it is the other way round",
    feeds={
        "A": Feed(flip(1.2, 0.05, 1.0), KEYS),
        "B": Feed(always(1.0), KEYS),
        "C": Feed(flip(1.2, 1.0, 0.05), KEYS),
        "D": Feed(always(0.1), KEYS),
    },
    regions={"all": 5.0},
    where="A.k = B.k AND B.k = C.k AND C.k = D.k",
    old=Forms("((A B) (C D))", "[A: B D C | B: A D C | C: D A B | D: A C B]"),
    changes=(Change(1.5, Forms("(((C D) B) A)", "[A: C D B | B: C D A | C: D B A | D: C B A]")),),
    drift=1.2,
    length=2.75,
)
