"""Queries that read other queries' answers answer what the oracle makes of those answers, amid changes of every plan."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.drawing import PROFILE, drawing
from tests.oracle.answer import Answer, answer
from tests.oracle.arrival import Arrivals, Lifetime, arrive
from tests.oracle.outer_spec import OuterSpec
from tests.oracle.spec import SECOND, TIME, Condition, Item, QuerySpec, SourceSpec, StreamSpec
from tests.property.cases import LARGEST, MOST_RESULTS, cuts, migrations, rescales, restarts, shapes
from tests.property.drive import Case, check
from tests.property.rows import cut, draw_rows

pytestmark = [pytest.mark.property, pytest.mark.timeout(7200)]

CASES = {"test": 200, "soak": 2000, "quick": 10}[PROFILE]

TIMED = Item(TIME, "t")
SIZES = st.sampled_from((0, 1, 2, 5)).map(lambda seconds: seconds * SECOND)


def equal(one: str, other: str) -> Condition:
    """Sources tied by `k`."""
    return Condition(f"{one}.k = {other}.k", (one, other))


@st.composite
def first_levels(draw: st.DrawFn) -> QuerySpec:
    """A query over pushed streams, with the columns `k`, `n`, `u` and `t`."""
    kind = draw(st.sampled_from(("join", "theta", "three", "filter", "aggregate", "left", "anti")))
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
    return OuterSpec(
        (SourceSpec("A", "A"), SourceSpec("B", "B")), items, on, written=written, windows=(a.range, b.range)
    )


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
        rows = found.table.set_column(3, "t", pa.array(found.times, pa.int64()).cast(pa.timestamp("us")))
        for name, numbers in (("__ts", found.times), ("__step", found.steps), ("__arrival", range(len(found.times)))):
            rows = rows.append_column(name, pa.array(list(numbers), pa.int64()))
        self.arrivals.admitted[query.name] = rows
        for step, marks in enumerate(self.arrivals.watermarks):
            marks[query.name] = self.arrivals.query_watermark(query.spec.streams, step)
        self.streams += (StreamSpec(query.name, rows.schema, "t"),)
        return found


@drawing(CASES)
@given(st.data())
def test_answers_that_others_read(data: st.DataObject) -> None:
    shape = data.draw(shapes(3, LARGEST[5]), label="shape")
    declared, sequence = draw_rows(shape)
    steps = cut(declared, sequence, data.draw(cuts(), label="cuts"))
    specs = [data.draw(first_levels(), label="q0")]
    for number in range(data.draw(st.integers(1, 2), label="levels")):
        read, others = f"q{number}", ("A", "C", *(f"q{n}" for n in range(number)))
        specs.append(data.draw(further_levels(read, others), label=f"q{number + 1}"))
    queries = tuple(Lifetime(f"q{n}", spec) for n, spec in enumerate(specs))
    oracle, expected = Expected(declared, arrive(declared, steps, queries[:1])), dict[str, Answer]()
    for query in queries:
        expected[query.name] = oracle.of(query)
        assume(expected[query.name].table.num_rows <= MOST_RESULTS // 4)
    case = Case(declared, steps, queries)
    joins = [q for q in queries if q.spec.every is None and len(q.spec.sources) > 1]
    moving = Case(declared, steps, tuple(q for q in joins if not isinstance(q.spec, OuterSpec)) or queries[:1])
    moves = data.draw(migrations(moving), label="migrations") if joins else ()
    actions = [*moves, *data.draw(rescales(case)), *data.draw(restarts(case, most=1))]
    lanes = data.draw(st.sampled_from((1, 3)), label="lanes")
    sharing = data.draw(st.sampled_from(("auto", "off")), label="sharing")
    check(case, expected, {}, actions, lanes=lanes, sharing=sharing)
