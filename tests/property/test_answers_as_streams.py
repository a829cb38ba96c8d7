"""Queries that read other queries' answers answer what the oracle makes of those, amid changes of every plan."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from typing_extensions import override

from midstream.ring.spreading import spreadings
from tests.drawing import drawing
from tests.oracle.answer import Answer, answer, moment
from tests.oracle.arrival import Arrivals, Lifetime, arrive
from tests.oracle.outer_spec import OuterSpec
from tests.oracle.spec import SECOND, TIME, Condition, Item, QuerySpec, SourceSpec, StreamSpec, duration
from tests.property.cases import LARGEST, MOST_RESULTS, cuts, migrations, rescales, restarts, shapes
from tests.property.drive import Case, Spread, check
from tests.property.rows import cut, draw_rows

pytestmark = [pytest.mark.property, pytest.mark.timeout(7200)]


SCHEMES = tuple(name for name in spreadings() if name != "lanes")
"""Ways to spread a join of any condition over nodes."""

KINDS = ("join", "theta", "three", "filter", "aggregate", "left", "anti")
TIMED = Item(TIME, "t")
SIZES = st.sampled_from((0, 1, 2, 5)).map(lambda seconds: seconds * SECOND)


def equal(one: str, other: str) -> Condition:
    """Sources tied by `k`."""
    return Condition(f"{one}.k = {other}.k", (one, other))


@st.composite
def first_levels(draw: st.DrawFn, kinds: tuple[str, ...] = KINDS) -> QuerySpec:
    """A query over pushed streams, with the columns `k`, `n`, `u` and `t`."""
    kind = draw(st.sampled_from(kinds))
    sizes = [draw(SIZES) for _ in range(3)]
    a, b, c = (SourceSpec(name, name, size) for name, size in zip("ABC", sizes, strict=True))
    of_both = (Item("A.k", "k"), Item("B.n", "n"), Item("A.u + B.u", "u"), TIMED)
    of_one = (Item("A.k", "k"), Item("A.n", "n"), Item("A.u", "u"), TIMED)
    if kind == "join":
        return QuerySpec((a, b), of_both, (equal("A", "B"),))
    if kind == "theta":
        return QuerySpec((a, b), of_both, (Condition("A.n < B.n", ("A", "B")),))
    if kind == "three":
        return QuerySpec((a, b, c), of_both, (equal("A", "B"), Condition("B.n = C.n", ("B", "C"))))
    if kind == "filter":
        return QuerySpec((SourceSpec("A", "A"),), of_one, (Condition("A.n > 0", ("A",)),))
    if kind == "aggregate":
        items = (Item("A.k", "k"), Item("COUNT(*)", "n"), Item("MAX(A.u)", "u"), TIMED)
        return QuerySpec((a,), items, (), ("A.k",), every=draw(st.sampled_from((1, 3))) * SECOND)
    written, items = ("LEFT JOIN", of_both) if kind == "left" else ("NOT EXISTS", of_one)
    on = (equal("A", "B"),)
    bare = (SourceSpec("A", "A"), SourceSpec("B", "B"))
    return OuterSpec(bare, items, on, written=written, windows=(sizes[0], sizes[1]))


@st.composite
def further_levels(draw: st.DrawFn, read: str, others: tuple[str, ...]) -> QuerySpec:
    """A query that reads the answers of `read`, with the same columns."""
    kind = draw(st.sampled_from(("join", "join", "self", "aggregate", "theta")))
    first = SourceSpec("Q", read, draw(SIZES))
    if kind == "aggregate":
        items = (Item("Q.k", "k"), Item("COUNT(*)", "n"), Item("MAX(Q.u)", "u"), TIMED)
        return QuerySpec((first,), items, (), ("Q.k",), every=draw(st.sampled_from((1, 3))) * SECOND)
    second = SourceSpec("R", read if kind == "self" else draw(st.sampled_from(others)), draw(SIZES))
    items = (Item("Q.k", "k"), Item("R.n", "n"), Item("Q.u + R.u", "u"), TIMED)
    on = Condition("Q.n < R.n", ("Q", "R")) if kind == "theta" else equal("Q", "R")
    return QuerySpec((first, second), items, (on, Condition("Q.u <> R.u", ("Q", "R"))))


@dataclass
class Expected:
    """The answers of queries in order, each of which may read those before it."""

    streams: tuple[StreamSpec, ...]
    arrivals: Arrivals

    def of(self, query: Lifetime) -> Answer:
        """The oracle's answer, which is a stream from now on."""
        found = answer(self.streams, self.arrivals, query)
        kind = moment(self.streams, query.spec)
        rows = found.table.set_column(3, "t", pa.array(found.times, pa.int64()).cast(kind))
        for name, numbers in (("__ts", found.times), ("__step", found.steps), ("__arrival", range(len(found.times)))):
            rows = rows.append_column(name, pa.array(list(numbers), pa.int64()))
        self.arrivals.admitted[query.name] = rows
        for step, marks in enumerate(self.arrivals.watermarks):
            marks[query.name] = self.arrivals.query_watermark(query.spec.streams, step)
        self.streams += (StreamSpec(query.name, rows.schema, "t"),)
        return found


@dataclass(frozen=True)
class Whole(QuerySpec):
    """A query in one text: the queries that it reads stand in FROM as subqueries, or in WITH."""

    within: tuple[tuple[str, QuerySpec], ...] = ()
    by_name: bool = False

    @override
    def cql(self) -> str:
        if self.by_name:
            named = ", ".join(f"{name} AS ({spec.cql()})" for name, spec in self.within)
            return f"WITH {named} {self._plain().cql()}"
        text, known = self._plain().cql(), dict[str, str]()
        for name, spec in self.within:
            known[name] = _with_subqueries(spec.cql(), spec, known)
        return _with_subqueries(text, self, known)

    def _plain(self) -> QuerySpec:
        return QuerySpec(**{f.name: getattr(self, f.name) for f in fields(QuerySpec)})


def _with_subqueries(text: str, spec: QuerySpec, known: dict[str, str]) -> str:
    """The text of a query with the texts of those that it reads in their places."""
    for source in spec.sources:
        if source.stream in known:
            size = f" [RANGE {duration(source.range)}]" if source.range is not None else ""
            text = text.replace(source.cql(), f"({known[source.stream]}) AS {source.alias}{size}", 1)
    return text


@dataclass(frozen=True)
class Drawn:
    """What is asked of which rows, and what the oracle answers."""

    case: Case
    expected: dict[str, Answer]


@st.composite
def drawn_cases(draw: st.DrawFn) -> Drawn:
    """Queries q0, q1 and perhaps q2, each of which reads the one before it."""
    shape = draw(shapes(3, LARGEST[5]))
    declared, sequence = draw_rows(shape)
    steps = cut(declared, sequence, draw(cuts()))
    specs = [draw(first_levels())]
    for number in range(draw(st.integers(1, 2))):
        specs.append(draw(further_levels(f"q{number}", ("A", "C", *(f"q{n}" for n in range(number))))))
    queries = tuple(Lifetime(f"q{n}", spec) for n, spec in enumerate(specs))
    oracle, expected = Expected(declared, arrive(declared, steps, queries[:1])), dict[str, Answer]()
    for query in queries:
        expected[query.name] = oracle.of(query)
        assume(expected[query.name].table.num_rows <= MOST_RESULTS // 4)
    return Drawn(Case(declared, steps, queries), expected)


def spreads(draw: st.DrawFn, case: Case, query: str) -> list[Spread]:
    """A query is spread over nodes with one step, and otherwise, or no more, with a later one."""
    steps = sorted(draw(st.sets(st.integers(0, len(case.steps) - 1), max_size=2)))
    found = [Spread(step, query, draw(st.sampled_from(SCHEMES)), draw(st.sampled_from((1, 2, 3)))) for step in steps]
    if len(found) > 1 and draw(st.booleans()):
        found[-1] = Spread(steps[-1], query, "off")
    return found


SETTINGS = {"lanes": st.sampled_from((1, 3)), "sharing": st.sampled_from(("auto", "off"))}


@drawing(200)
@given(drawn=drawn_cases(), data=st.data(), **SETTINGS)
def test_answers_that_others_read(drawn: Drawn, data: st.DataObject, lanes: int, sharing: str) -> None:
    case = drawn.case
    joins = [q for q in case.queries if q.spec.every is None and len(q.spec.sources) > 1]
    able = tuple(q for q in joins if not isinstance(q.spec, OuterSpec))
    moves = data.draw(migrations(replace(case, queries=able))) if able else ()
    actions = [*moves, *data.draw(rescales(case)), *data.draw(restarts(case, most=1))]
    check(case, drawn.expected, {}, actions, lanes=lanes, sharing=sharing)


@drawing(100)
@given(drawn=drawn_cases(), data=st.data(), **SETTINGS)
def test_answers_over_nodes_that_others_read(drawn: Drawn, data: st.DataObject, lanes: int, sharing: str) -> None:
    case = drawn.case
    joins = [q for q in case.queries if q.spec.every is None and len(q.spec.sources) > 1]
    able = [q.name for q in joins if not isinstance(q.spec, OuterSpec)]
    assume(able)
    spread = [one for query in able for one in data.draw(st.composite(spreads)(case, query))]
    actions = [*spread, *data.draw(rescales(case)), *data.draw(restarts(case, most=1))]
    check(case, drawn.expected, {}, actions, lanes=lanes, sharing=sharing)


@drawing(200)
@given(drawn=drawn_cases(), data=st.data(), by_name=st.booleans(), **SETTINGS)
def test_subqueries_and_with(drawn: Drawn, data: st.DataObject, by_name: bool, lanes: int, sharing: str) -> None:
    *inner, last = drawn.case.queries
    known = {f.name: getattr(last.spec, f.name) for f in fields(QuerySpec)}
    whole = Whole(**known, within=tuple((q.name, q.spec) for q in inner), by_name=by_name)
    case = replace(drawn.case, queries=(Lifetime("whole", whole),))
    actions = [*data.draw(rescales(case)), *data.draw(restarts(case, most=1))]
    found = check(case, {"whole": drawn.expected[last.name]}, {}, actions, lanes=lanes, sharing=sharing)
    assert list(found.outputs) == ["whole"], "parts are not answered"


@dataclass(frozen=True)
class United(QuerySpec):
    """The answers of several queries."""

    parts: tuple[QuerySpec, ...] = ()

    @override
    def cql(self) -> str:
        return " UNION ALL ".join(part.cql() for part in self.parts)


@drawing(200)
@given(data=st.data(), **SETTINGS)
def test_union_all(data: st.DataObject, lanes: int, sharing: str) -> None:
    declared, sequence = draw_rows(data.draw(shapes(3, LARGEST[5])))
    steps = cut(declared, sequence, data.draw(cuts()))
    kinds = data.draw(st.sampled_from((("join", "theta", "three", "left"), ("filter", "anti"))))
    parts = data.draw(st.lists(first_levels(kinds), min_size=2, max_size=3))
    alone = [Lifetime(f"part{n}", part) for n, part in enumerate(parts)]
    arrivals = arrive(declared, steps, alone)
    answers = [answer(declared, arrivals, query) for query in alone]
    kinds = [found.table.schema.field("t").type for found in answers]
    kind = next((kind for kind in kinds if kind.tz), kinds[0])  # If one has a zone, all are given one.
    table = pa.concat_tables([found.table.set_column(3, "t", found.table["t"].cast(kind)) for found in answers])
    expected = Answer(table, [t for a in answers for t in a.times], [s for a in answers for s in a.steps], frozenset())
    case = Case(declared, steps, (Lifetime("q", United((), (), parts=tuple(parts))),))
    actions = [*data.draw(rescales(case)), *data.draw(restarts(case, most=1))]
    check(case, {"q": expected}, {}, actions, lanes=lanes, sharing=sharing)
