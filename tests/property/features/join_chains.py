"""Outer, semi and anti joins of several streams, and aggregates over joins: what DuckDB gives over the whole input."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume
from hypothesis import strategies as st

from tests.oracle.chain_spec import IN_WHERE, ChainJoin, ChainSpec
from tests.oracle.spec import SECOND, TIME, Item, SourceSpec
from tests.property.queries import BANDS, EQUALITIES, SELECTIONS, THETAS

OUTER = ("LEFT JOIN", "LEFT JOIN", "LEFT OUTER JOIN", "RIGHT JOIN", "FULL JOIN", "JOIN", "SEMI JOIN", "ANTI JOIN")
KEPT = ("LEFT JOIN", "JOIN", "SEMI JOIN", "ANTI JOIN")
AFTER = ("{a}.u IS NULL", "{a}.k IS NULL OR {a}.k > 0", "COALESCE({a}.k, 0) <= COALESCE({b}.k, 1)", "{a}.k > 0")
ITEMS = ("{a}.u", "{a}.s", "{a}.ts", "COALESCE({a}.k, -1) + COALESCE({b}.k, -1)", "{a}.d")


@st.composite
def chains(draw: st.DrawFn, count: int, *, interval: bool, aggregated: bool) -> ChainSpec:
    """A chain of joins of any kinds, tied by any conditions."""
    form = draw(st.sampled_from(("own", "query", "interval") if interval else ("own", "own", "query")))
    same = draw(st.integers(0, 5)) * SECOND
    own = st.sampled_from((0, 1, 2, 3, 5)).map(lambda size: size * SECOND)
    # DuckDB takes D for the column d.
    names = "ABCE"[:count]
    streams = [
        stream if draw(st.integers(0, 5)) else draw(st.sampled_from("ABCD"[:count])) for stream in "ABCD"[:count]
    ]
    sources = tuple(
        SourceSpec(name, stream, same if form == "query" else draw(own))
        for name, stream in zip(names, streams, strict=True)
    )
    written = [draw(st.sampled_from(KEPT if form == "interval" else OUTER)) for _ in names[1:]]
    for place in range(count - 1, count - 1 - draw(st.sampled_from((0, 0, 1, 2))), -1):
        written[place - 1] = draw(st.sampled_from(IN_WHERE))
    joins, visible = list[ChainJoin](), [names[0]]
    for name, kind in zip(names[1:], written, strict=True):
        texts = draw(st.sampled_from((*[EQUALITIES] * 5, BANDS, THETAS, ("TRUE",))))
        inner = ("", "")
        if kind in ("IN", "NOT IN"):
            column = draw(st.sampled_from(("k", "s")))
            inner = (f"{draw(st.sampled_from(visible))}.{column}", f"{name}.{column}")
        on = [draw(st.sampled_from(texts)).format(a=draw(st.sampled_from(visible)), b=name)]
        if draw(st.integers(0, 3)) == 0:
            on.append(draw(st.sampled_from(EQUALITIES)).format(a=draw(st.sampled_from(visible)), b=name))
        if draw(st.integers(0, 3)) == 0:
            on.append(draw(st.sampled_from(SELECTIONS)).format(a=draw(st.sampled_from([*visible, name]))))
        on = on[: draw(st.integers(0, 1))] if inner[0] else on
        joins.append(ChainJoin(kind, tuple(on), inner))
        visible += [] if kind in (*IN_WHERE, "SEMI JOIN", "ANTI JOIN") else [name]
    assume(form != "interval" or not any(".ts" in text for join in joins for text in join.on))
    some = st.sampled_from(visible)
    after = tuple(
        draw(st.sampled_from(AFTER)).format(a=draw(some), b=draw(some))
        for _ in range(draw(st.sampled_from((0, 0, 1, 2))))
    )
    window = same if form == "query" else None
    if not aggregated:
        chosen = [
            draw(st.sampled_from(ITEMS)).format(a=draw(some), b=draw(some)) for _ in range(draw(st.integers(1, 4)))
        ]
        items = (*(Item(text, f"c{place}") for place, text in enumerate(chosen)), Item(TIME))
        return ChainSpec(sources, items, window=window, joins=tuple(joins), after=after, form=form)
    groups = tuple(f"{draw(some)}.{draw(st.sampled_from(('k', 's')))}" for _ in range(draw(st.integers(0, 1))))
    counted = ("COUNT(*)", f"SUM(COALESCE({draw(some)}.k, -1))", f"MAX({draw(some)}.u)")
    items = (*(Item(text, f"c{place}") for place, text in enumerate((*groups, *counted))), Item(TIME))
    size = draw(st.sampled_from((1, 2, 3, 7))) * SECOND
    spec = ChainSpec(sources, items, (), groups, window=window, joins=tuple(joins), after=after, form=form)
    if form == "query" and any(join.kind != "INNER" for join in joins) and draw(st.booleans()):
        return replace(spec, every=size)
    padded = any(join.kind in ("RIGHT", "FULL") for join in joins)
    return replace(spec, tumble=size, of=TIME if padded or draw(st.booleans()) else "A.ts")
