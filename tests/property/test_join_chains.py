"""Outer, semi and anti joins of several streams, and aggregates over joins: what DuckDB gives over the whole input."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from midstream.language.parse import parsed
from tests.drawing import drawing
from tests.oracle.arrival import Lifetime
from tests.oracle.chain_spec import IN_WHERE, ChainJoin, ChainSpec
from tests.oracle.compare import assert_each_step_same
from tests.oracle.spec import SECOND, TIME, Item, SourceSpec
from tests.property.cases import LARGEST, MOST_RESULTS, cuts, rescales, restarts, shapes, strategies
from tests.property.drive import Action, Case, Migrate, check, start
from tests.property.queries import BANDS, EQUALITIES, SELECTIONS, THETAS
from tests.property.rows import TIME_TYPES, cut, draw_rows

pytestmark = [pytest.mark.property, pytest.mark.timeout(7200)]


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


@st.composite
def drawn_cases(draw: st.DrawFn, *, aggregated: bool) -> Case:
    """Rows cut into steps, and a chain over them."""
    count = draw(st.sampled_from((3, 3, 4, 2) if aggregated else (3, 3, 4)))
    shape = draw(shapes(count, LARGEST[4]))
    declared, sequence = draw_rows(shape)
    steps = cut(declared, sequence, draw(cuts()), bare=draw(st.booleans()))
    spec = draw(chains(count, interval=shape.time in TIME_TYPES[:2], aggregated=aggregated))
    case = Case(declared, steps, (Lifetime("q0", spec),))
    assume(case.expected()["q0"].table.num_rows <= MOST_RESULTS // 4)
    return case


@st.composite
def moves(draw: st.DrawFn, case: Case) -> tuple[Action, ...]:
    """Migrations of what joins in a query: of itself, or of its parts."""
    engine = start(case.streams)
    engine.add_query("q0", case.queries[0].spec.cql())
    read = {name: parsed(engine.manifest, entry.sql).aliases for name, entry in engine.manifest.queries.items()}
    able = sorted(name for name, aliases in read.items() if len(aliases) > 1)
    found: list[Action] = []
    for _ in range(draw(st.integers(0, 3)) if able else 0):
        name = draw(st.sampled_from(able))
        first, *others = draw(st.permutations(read[name]))
        plan = reduce(lambda tree, alias: f"({tree} {alias})", others, first)
        step = draw(st.integers(0, len(case.steps) - 1))
        found.append(Migrate(step, name, plan, draw(st.sampled_from(strategies()))))
    return tuple(found)


SETTINGS = {"lanes": st.sampled_from((1, 3)), "sharing": st.sampled_from(("auto", "off"))}


@drawing(200)
@given(case=drawn_cases(aggregated=False), data=st.data(), **SETTINGS)
def test_chains_answer_what_the_oracle_does_in_the_step_that_can_know_it(
    case: Case, data: st.DataObject, lanes: int, sharing: str
) -> None:
    answer = case.expected()["q0"]
    actions = data.draw(moves(case), label="migrations")
    if data.draw(st.booleans(), label="disturbed"):
        actions += (*data.draw(rescales(case)), *data.draw(restarts(case, most=2)))
    found = check(case, {"q0": answer}, None, actions, lanes=lanes, sharing=sharing)
    assert_each_step_same(found.outputs["q0"], answer)


@drawing(200)
@given(case=drawn_cases(aggregated=True), data=st.data(), **SETTINGS)
def test_aggregates_over_chains(case: Case, data: st.DataObject, lanes: int, sharing: str) -> None:
    answer = case.expected()["q0"]
    actions = (*data.draw(moves(case)), *data.draw(rescales(case)), *data.draw(restarts(case, most=1)))
    found = check(case, {"q0": answer}, None, actions, lanes=lanes, sharing=sharing)
    assert_each_step_same(found.outputs["q0"], answer)
