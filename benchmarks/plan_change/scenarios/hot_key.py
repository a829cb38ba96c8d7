"""One key becomes hot in the two streams that the old plan joins first."""

from __future__ import annotations

from benchmarks.plan_change.scenario import Change, Feed, Forms, Scenario, always, flip

HOT = flip(1.2, 0.0, 0.006)

HOT_KEY = Scenario(
    name="hot_key",
    title="one key becomes hot in A and B, which the old plan joins first; C never has it",
    feeds={
        "A": Feed(always(1.0), {"k": {"hot": HOT, "all": always(0.2)}}),
        "B": Feed(always(1.0), {"k": {"hot": HOT, "all": always(0.9)}}),
        "C": Feed(always(1.0), {"k": {"all": always(0.5)}}),
    },
    regions={"hot": float("inf"), "all": 4.0},
    where="A.k = B.k AND B.k = C.k",
    old=Forms("((A B) C)", "[A: B C | B: A C | C: A B]"),
    changes=(Change(1.5, Forms("(A (B C))", "[A: C B | B: C A | C: B A]")),),
    drift=1.2,
    length=2.75,
)
