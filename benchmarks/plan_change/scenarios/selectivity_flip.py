"""At one moment the selective join becomes the wide one, and the other way round."""

from __future__ import annotations

from benchmarks.plan_change.scenario import Change, Feed, Forms, Scenario, always, flip

AB_FIRST = Forms("((A B) C)", "[A: B C | B: A C | C: A B]")
BC_FIRST = Forms("(A (B C))", "[A: B C | B: C A | C: B A]")

SELECTIVITY_FLIP = Scenario(
    name="selectivity_flip",
    title="B's rows find many of C's and few of A's; from one moment on it is the other way round",
    feeds={
        "A": Feed(always(1.0), {"k": {"all": always(0.1), "ab": flip(1.2, 0.0, 0.9)}}),
        "B": Feed(always(1.0), {"k": {"all": always(0.1), "ab": always(0.45), "bc": always(0.45)}}),
        "C": Feed(always(1.0), {"k": {"all": always(0.1), "bc": flip(1.2, 0.9, 0.0)}}),
    },
    regions={"all": 20.0, "ab": 16.0, "bc": 16.0},
    where="A.k = B.k AND B.k = C.k",
    old=AB_FIRST,
    changes=(Change(1.5, BC_FIRST),),
    drift=1.2,
    length=2.75,
)
