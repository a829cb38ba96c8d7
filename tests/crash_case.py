"""What the jobs run that are killed: a join that migrates, an aggregate, an outer join, over rows out of order."""

from __future__ import annotations

from tests.oracle.arrival import Lifetime
from tests.oracle.outer_spec import OuterSpec
from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec
from tests.property.drive import Case
from tests.property.rows import Shape, cut, draw_rows

SHAPE = Shape(seed=11, sizes=(120, 120, 120), span=24, keys=5, disorder=2, slack=1)
PLANS = ("((A B) C)", "(A (B C))")
CHAIN = QuerySpec(
    tuple(SourceSpec(name, name, range=4 * SECOND) for name in "ABC"),
    (Item("A.u", "a"), Item("B.u", "b"), Item("C.u", "c")),
    (Condition("A.k = B.k", ("A", "B")), Condition("B.k = C.k", ("B", "C"))),
)
GROUPED = QuerySpec(
    (SourceSpec("A", "A", range=3 * SECOND), SourceSpec("B", "B", range=3 * SECOND)),
    (Item("COUNT(*)", "n"), Item("_ts")),
    (Condition("A.n < B.n", ("A", "B")),),
    every=2 * SECOND,
)
MATCHED = OuterSpec(
    (SourceSpec("A", "A"), SourceSpec("B", "B")),
    (Item("A.u", "a"), Item("B.u", "b"), Item("_ts")),
    (Condition("A.k = B.k", ("A", "B")), Condition("A.n > 0", ("A",))),
    written="FULL JOIN",
    windows=(2 * SECOND, 3 * SECOND),
)
STREAMS, ROWS = draw_rows(SHAPE)


def crash_case(*cuts: int) -> Case:
    """The rows in steps, cut at these percentages of them."""
    queries = (Lifetime("chain", CHAIN), Lifetime("counts", GROUPED), Lifetime("matched", MATCHED))
    return Case(STREAMS, cut(STREAMS, ROWS, cuts), queries)
