"""The first n rows of each group, every so often or of windows to group by, and conditions on what is ranked, are those
of DuckDB, amid migrations.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tests.oracle.ranked_spec import RankedSpec
from tests.oracle.spec import SECOND, Condition, Item, SourceSpec

LIMITS = ("{rank} <= 1", "{rank} <= 2", "{rank} <= 5", "{rank} < 3", "{rank} = 1", "3 >= {rank}", "{rank} = 2")
LIMITS += ("{rank} BETWEEN 1 AND 3", "{rank} BETWEEN 2 AND 3", "{rank} IN (1, 3)", "{rank} <= 4 AND {rank} > 1")
AFTER = ("d > 0.5", "k IS NOT NULL", "u % 2 = 0", "k = 1 OR d < 1")


@st.composite
def ranked(draw: st.DrawFn) -> RankedSpec:
    """A query over one stream or two."""
    joined, size = draw(st.booleans()), draw(st.sampled_from((1, 2, 5))) * SECOND
    windowed = "" if joined else draw(st.sampled_from(("", "TUMBLE", "HOP", "table")))
    sources = tuple(SourceSpec(name, name, size - bool(windowed)) for name in ("AB" if joined else "A"))
    items = [Item("A.k", "k"), Item("A.d", "d"), Item("A.u", "u"), *([Item("B.u", "w")] if joined else [])]
    keys = ("A.d", "A.n", "A.s", "A.u", "A.ok")
    order = draw(st.lists(st.tuples(st.sampled_from(keys), st.booleans()), max_size=2, unique_by=lambda key: key[0]))
    where = (Condition("A.k = B.k", ("A", "B")),) if joined else ()
    where += (Condition("A.n > 0", ("A",)),) if draw(st.booleans()) else ()
    return RankedSpec(
        sources,
        tuple(items),
        where,
        tuple(draw(st.lists(st.sampled_from(("A.k", "A.s", "A.n")), max_size=2, unique=True))),
        every=size if windowed in ("TUMBLE", "table") else draw(st.sampled_from((1,) if windowed else (1, 3))) * SECOND,
        order=tuple(order),
        limit=draw(st.sampled_from(LIMITS)),
        function=draw(st.sampled_from(("ROW_NUMBER", "ROW_NUMBER", "RANK", "DENSE_RANK"))),
        after=draw(st.sampled_from(("", *AFTER))),
        nested=draw(st.booleans()),
        named=draw(st.booleans()),
        windowed=windowed,
    )
