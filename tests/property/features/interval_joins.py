"""Interval joins: how far the times of two streams may be apart is said by conditions, and no window is written."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec

WRITTEN = (
    "{a}.ts BETWEEN {b}.ts - INTERVAL {low} SECONDS AND {b}.ts + INTERVAL {high} SECONDS",
    "{a}.ts >= {b}.ts - INTERVAL {low} SECONDS AND {a}.ts <= {b}.ts + INTERVAL {high} SECONDS",
    "{b}.ts - {a}.ts <= INTERVAL {low} SECONDS AND {a}.ts - {b}.ts < INTERVAL {high} SECONDS",
    "ABS({a}.ts - {b}.ts) <= INTERVAL {high} SECONDS",
    "{a}.ts = {b}.ts",
)
OF_ORACLE = {WRITTEN[3]: "{a}.ts BETWEEN {b}.ts - INTERVAL {high} SECONDS AND {b}.ts + INTERVAL {high} SECONDS"}
"""DuckDB has no ABS of an INTERVAL."""

TIES = ("{a}.k = {b}.k", "{a}.k = {b}.k", "{a}.k < {b}.k", "{a}.s = {b}.s")


@st.composite
def interval_joins(draw: st.DrawFn, names: str) -> QuerySpec:
    """A join whose sources are tied in time to one before, rarely with a window of their own beside it."""
    sources, where = [], list[Condition]()
    for place, name in enumerate(names):
        sized = draw(st.integers(0, 4)) == 0
        sources.append(SourceSpec(name, name, range=draw(st.sampled_from((2, 5))) * SECOND if sized else None))
        if not place:
            continue
        one, other = draw(st.permutations((name, names[draw(st.integers(0, place - 1))])))
        low, high = draw(st.sampled_from((0, 1, 3, 8))), draw(st.sampled_from((0, 2, 5)))
        texts = draw(st.sampled_from(WRITTEN)), draw(st.sampled_from(TIES))
        for text in texts:
            cql, sql = (t.format(a=one, b=other, low=low, high=high) for t in (text, OF_ORACLE.get(text, text)))
            where.append(Condition(cql, (one, other), sql))
    items = (*[Item(f"{name}.u", f"u{name}") for name in names], Item("_ts"))
    return QuerySpec(tuple(sources), items, tuple(draw(st.permutations(where))))
