"""A user's predicate joins and filters like any condition: in every plan, amid migrations, restarts and spreads.

The oracle evaluates the same condition in DuckDB's own words.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import midstream as ms
from midstream.ring.spreading import spreadings
from tests.conformance.expected import Expected
from tests.drawing import drawing
from tests.oracle.arrival import Lifetime
from tests.oracle.spec import Condition, QuerySpec
from tests.property.cases import cuts, migrations, rescales, restarts, shapes, twins
from tests.property.drive import Case, Migrate, check, start
from tests.property.queries import plans, queries
from tests.property.rows import cut, draw_rows
from tests.user_predicates import ALIKE_SQL, CLOSE_BY_SQL, EVEN_SUM_SQL, ODD_SQL

pytestmark = pytest.mark.property

LARGEST = {2: 20, 3: 12, 4: 8}
MOST_RESULTS = 600
done: Counter[str] = Counter()

ASKED = (
    ("close_by({a}.d, {b}.d)", CLOSE_BY_SQL),
    ("alike({a}.s, {b}.s, 1)", ALIKE_SQL),
    ("ALIKE({b}.s, {a}.s, 1) OR {a}.k = {b}.k", f"{ALIKE_SQL} OR {{a}}.k = {{b}}.k"),
    ("NOT close_by({a}.d, {b}.d)", f"NOT ({CLOSE_BY_SQL})"),
    ("even_sum({a}.k, {b}.k, {c}.k)", EVEN_SUM_SQL),
    ("is_odd({a}.k)", ODD_SQL),
    ("is_odd({a}.k) = is_odd({b}.k)", f"({ODD_SQL}) = (({{b}}.k & 1) = 1)"),
)
"""Conditions with what the oracle is asked instead."""


@st.composite
def asking(draw: st.DrawFn, spec: QuerySpec) -> QuerySpec:
    """The query with one or two conditions that ask a predicate, some in the place of others."""
    names = [source.alias for source in spec.sources]
    where = list(spec.where)
    for _ in range(draw(st.sampled_from((1, 1, 2)))):
        a, b, c = (draw(st.permutations(names)) * 2)[:3]
        text, sql = draw(st.sampled_from([one for one in ASKED if len(names) > 2 or "{c}" not in one[0]]))
        used = tuple(dict.fromkeys(n for n, w in ((a, "{a}."), (b, "{b}."), (c, "{c}.")) if w in text))
        condition = Condition(text.format(a=a, b=b, c=c), used, sql.format(a=a, b=b, c=c))
        if where and draw(st.booleans()):
            where[draw(st.integers(0, len(where) - 1))] = condition
        else:
            where.append(condition)
    return replace(spec, where=tuple(where))


@st.composite
def cases(draw: st.DrawFn, kinds: tuple[str, ...], *, rows_windows: bool) -> Case:
    """A query that asks a predicate, and one near to it that may share its states."""
    count = draw(st.sampled_from((2, 3, 3, 4)))
    joins = queries("ABCD"[:count], kinds=kinds, rows_windows=rows_windows, least=2, sources=4)
    drawn = draw(joins.filter(lambda query: len(query.sources) > 1))
    spec = draw(asking(drawn))
    shape = draw(shapes(count, LARGEST[max(2, len(spec.all_sources))]))
    if draw(st.booleans()):  # Rows of one key meet.
        shape = replace(shape, keys=1, nulls=0.0)
    streams, sequence = draw_rows(shape)
    lives = Lifetime("q0", spec), Lifetime("twin", draw(twins(spec)))
    return Case(streams, cut(streams, sequence, draw(cuts())), lives, False)


@drawing(100, soak=20, shrink=True)
@given(st.data())
def test_neither_plans_nor_migrations_nor_restarts_show(data: st.DataObject) -> None:
    case = data.draw(cases(("join", "join", "aggregate"), rows_windows=True))
    expected = case.expected()
    assume(all(answer.table.num_rows <= MOST_RESULTS for answer in expected.values()))
    first = {query.name: data.draw(plans(query.spec), label="plan") for query in case.queries}
    actions = (*data.draw(migrations(case)), *data.draw(rescales(case)), *data.draw(restarts(case)))
    sharing = data.draw(st.sampled_from(("auto", "pull_up", "mem_opt", "off")), label="sharing")
    found = check(case, expected, first, actions, lanes=data.draw(st.sampled_from((1, 2))), sharing=sharing)
    done.update(
        f"{action.strategy}" for action in actions if isinstance(action, Migrate) and action not in found.refused
    )
    done["cases"] += 1
    done["found"] += expected["q0"].table.num_rows > 0


@drawing(100, soak=20, shrink=True)
@given(st.data())
def test_spreads_do_not_show(data: st.DataObject) -> None:
    case = data.draw(cases(("join",), rows_windows=False))
    answers = case.expected()
    assume(all(answer.table.num_rows <= MOST_RESULTS for answer in answers.values()))
    engine, found = start(case.streams), dict[str, list[pa.Table]]()
    for way in spreadings():
        try:
            engine.add_query(
                way, case.queries[0].spec.cql(), spread=way, nodes=data.draw(st.sampled_from((1, 2, 3, 5)))
            )
        except ms.PlanError:
            assert way == "lanes"
            continue
        found[way] = []
    for step in case.steps:
        for way, table in engine.push(dict(step)).items():
            found[way].append(table)
    expected = Expected(answers["q0"], len(case.steps))
    for way, tables in found.items():
        expected.check(tables, in_order=False, label=way)
        done[f"spread {way}"] += 1


def test_predicates_were_exercised() -> None:
    """Runs after the tests above, which would pass if nothing was ever found or moved."""
    if done["cases"] > 15:
        assert done["found"] > done["cases"] / 4
        assert len([name for name in ms.strategies() if done[name]]) > len(ms.strategies()) / 3
        assert all(done[f"spread {way}"] for way in spreadings() if way != "lanes")
