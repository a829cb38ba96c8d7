"""Outer, semi and anti joins: what DuckDB gives over the whole input, an unmatched row when no partner can come."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.oracle.outer_spec import ANTI, OUTER, SEMI, OuterSpec
from tests.oracle.spec import SECOND, TIME, Condition, Item, SourceSpec
from tests.property.queries import BANDS, EQUALITIES, SELECTIONS, THETAS

AFTER = ("B.u IS NULL", "A.u IS NULL OR A.k > 1", "COALESCE(A.k, 0) <= COALESCE(B.k, 1)", "A.k > 0", "B.s IS NOT NULL")
ITEMS = ("A.u", "B.u", "COALESCE(A.k, -1) + COALESCE(B.k, -1)", "A.s", "B.d", "B.ts", "A.ok")


@st.composite
def outer_joins(draw: st.DrawFn, *, interval: bool) -> OuterSpec:
    """A join of any kind, tied by any conditions, some of them over one side."""
    written = draw(st.sampled_from((*OUTER, *OUTER, *SEMI, *ANTI)))
    texts = draw(st.sampled_from((EQUALITIES, EQUALITIES, EQUALITIES, BANDS, THETAS, ("TRUE",))))
    on = [draw(st.sampled_from(texts)).format(a="A", b="B")]
    inner = draw(st.sampled_from(("k", "s"))) if written in ("IN", "NOT IN") else ""
    if inner:
        on = on[: draw(st.integers(0, 1))]
    for _ in range(draw(st.sampled_from((0, 0, 1, 2)))):
        on.append(draw(st.sampled_from(SELECTIONS)).format(a=draw(st.sampled_from("AB"))))
    outer = written in OUTER
    after = draw(st.lists(st.sampled_from(AFTER if outer else ("A.k > 0", "A.s IS NOT NULL")), max_size=1))
    chosen = draw(st.lists(st.sampled_from(ITEMS if outer else ("A.u", "A.s", "A.k + 1")), min_size=1, max_size=4))
    items = [Item(text, f"c{place}") for place, text in enumerate(chosen)]
    sizes = st.sampled_from((0, 1, 2, 3, 5, 8)).map(lambda size: size * SECOND)
    return OuterSpec(
        (SourceSpec("A", "A"), SourceSpec("B", "B")),
        (*items, Item(TIME)),
        tuple(Condition(text, ("A", "B")) for text in on),
        written=written,
        windows=(draw(sizes), draw(sizes)),
        # Other conditions on the timestamps may imply narrower windows.
        interval=interval and draw(st.booleans()) and not any(".ts" in text for text in on),
        after=tuple(f"({text})" for text in after),
        inner=inner,
        known=draw(st.sampled_from(("", "A", "B", "AB", "AB"))) if inner else "",
    )
