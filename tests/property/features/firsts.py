"""FIRST, LAST and ANY_VALUE: what DuckDB's list of the group's values in order of their times begins and ends with."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec

WRITTEN = {
    "FIRST({x})": "list({x} ORDER BY {t}, {x})[1]",
    "FIRST_VALUE({x})": "list({x} ORDER BY {t}, {x})[1]",
    "LAST({x})": "list({x} ORDER BY {t}, {x})[-1]",
    "LAST_VALUE({x})": "list({x} ORDER BY {t}, {x})[-1]",
    "LAST({x}) IGNORE NULLS": "(list({x} ORDER BY {t}, {x}) FILTER (WHERE {x} IS NOT NULL))[-1]",
    "FIRST({x}, true)": "(list({x} ORDER BY {t}, {x}) FILTER (WHERE {x} IS NOT NULL))[1]",
    "ANY_VALUE({x})": "(list({x} ORDER BY {t}, {x}) FILTER (WHERE {x} IS NOT NULL))[1]",
    "LAST({x}) FILTER (WHERE {c})": "(list({x} ORDER BY {t}, {x}) FILTER (WHERE {c}))[-1]",
    "FIRST({x}) FILTER (WHERE {c}) IGNORE NULLS": "(list({x} ORDER BY {t}, {x}) "
    "FILTER (WHERE {x} IS NOT NULL AND {c}))[1]",
    "FIRST({x} ORDER BY {y} DESC)": "list({x} ORDER BY {y} DESC, {x})[1]",
    "LAST({x} ORDER BY {y})": "list({x} ORDER BY {y}, {x})[-1]",
}  # fmt: skip
"""As users write them, and as the oracle does; `{t}` is the time of a row, or of a result of a join."""


@st.composite
def calls(draw: st.DrawFn, time: str, aliases: str = "A") -> Item:
    """A call over the columns of these sources."""
    columns = [f"{alias}.{name}" for alias in aliases for name in ("k", "s", "d", "n", "ok", "m", "day", "u", "ts")]
    ours = draw(st.sampled_from(sorted(WRITTEN)))
    x, y = (draw(st.sampled_from(columns)) for _ in range(2))
    condition = draw(st.sampled_from(("A.n > 0", "A.s IS NOT NULL", "A.ok")))
    text, sql = (written.format(x=x, y=y, t=time, c=condition) for written in (ours, WRITTEN[ours]))
    return Item(text, sql=sql)


def named(calls: list[Item]) -> list[Item]:
    """The calls under names of their own."""
    return [replace(call, name=f"a{n}") for n, call in enumerate(calls)]


@st.composite
def grouped(draw: st.DrawFn) -> QuerySpec:
    """An aggregate of one stream or of a join of two, every so often."""
    joined = draw(st.booleans())
    sizes = st.sampled_from((1, 2, 5)).map(lambda seconds: seconds * SECOND)
    sources = tuple(SourceSpec(name, name, draw(sizes)) for name in ("AB" if joined else "A"))
    time = "greatest(A.__ts, B.__ts)" if joined else "A.__ts"
    groups = tuple(draw(st.lists(st.sampled_from(("A.k", "A.s")), max_size=1)))
    chosen = draw(st.lists(calls(time, "AB" if joined else "A"), min_size=1, max_size=3))
    items = (*(Item(text, f"g{n}") for n, text in enumerate(groups)), *named(chosen))
    where = (Condition("A.k = B.k", ("A", "B")),) if joined else ()
    return QuerySpec(sources, items, where, groups, every=draw(st.sampled_from((1, 3))) * SECOND)
