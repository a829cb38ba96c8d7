"""Rows grouped by TUMBLE, HOP and Spark's `window`: the groups that DuckDB makes of all rows, once each, when final."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drawing import drawing
from tests.oracle.answer import Answer, connection, moment
from tests.oracle.arrival import Lifetime, arrive
from tests.oracle.compare import assert_each_step_same
from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec
from tests.property.cases import LARGEST, cuts, rescales, restarts, shapes
from tests.property.drive import Case, Migrate, check
from tests.property.rows import cut, draw_rows

pytestmark = [pytest.mark.property, pytest.mark.timeout(7200)]


CALLS = ("COUNT(*)", "COUNT(DISTINCT A.k)", "SUM(A.n)", "MIN(A.s)", "MAX(A.u)", "MEDIAN(A.n)")
CALLS += ("COUNT(A.n) FILTER (WHERE A.k > 0)",)
CONDITIONS = ("", "A.n > 0", "A.k = 1", "A.s IS NOT NULL")
HAVINGS = ("", "COUNT(*) > 1", "MIN(A.u) > 3")


@dataclass(frozen=True)
class Windowed(QuerySpec):
    """A query over one stream whose rows are grouped by windows in time, in microseconds."""

    size: int = SECOND
    slide: int = SECOND
    written: str = "hop"
    condition: str = ""
    distinct: bool = False

    def cql(self) -> str:
        """The text in one of the ways in which users write it."""
        size, slide = (f"{n // 1000} MILLISECONDS" for n in (self.size, self.slide))
        call, start, end = f"HOP(A.ts, INTERVAL {slide}, INTERVAL {size})", "window_start", "window_end"
        if self.written == "window":
            call, start, end = f"window(A.ts, '{size}', '{slide}')", "window.start", "window.end"
        elif self.written == "tumble":
            call = f"TUMBLE(A.ts, INTERVAL {size})"
            start, end = (f"TUMBLE_{bound}(A.ts, INTERVAL {size})" for bound in ("START", "END"))
        items = [*[item.cql() for item in self.select], f"{start} AS began", f"{end} AS ended", "_ts"]
        where = f" WHERE {self.condition}" if self.condition else ""
        having = f" HAVING {self.having}" if self.having else ""
        if self.distinct:
            return f"SELECT DISTINCT {', '.join(items)} FROM A{where} GROUP BY {call}"
        return f"SELECT {', '.join(items)} FROM A{where} GROUP BY {', '.join([call, *self.group_by])}{having}"


def expected(case: Case) -> Answer:
    """Every window that the watermark passed, over the rows that lie in it, each in the step that passed its end."""
    spec = case.queries[0].spec
    assert isinstance(spec, Windowed)
    arrivals = arrive(case.streams, case.steps, case.queries)
    marks = [arrivals.query_watermark(frozenset("A"), step) for step in range(len(case.steps))]
    reached = max((mark for mark in marks if mark is not None), default=0)
    connection().register("rows_of_a", arrivals.admitted["A"])
    first = f"__ts // {spec.slide} * {spec.slide} - {spec.size // spec.slide + 2} * {spec.slide}"
    starts = f"unnest(generate_series({first}, __ts, {spec.slide})) AS began"
    items = [f"{item.sql or item.text} AS {item.name}" for item in spec.select]
    made = f"make_timestamp{'tz' if moment(case.streams, spec).tz else ''}"
    items += [f"{made}(began{plus}) AS {name}" for name, plus in BOUNDS.items()]
    items = [item.format(size=spec.size) for item in items]
    table = (
        connection()
        .sql(
            f"SELECT {', '.join(items)}, began + {spec.size} AS t FROM (SELECT *, {starts} FROM rows_of_a) AS A "
            f"WHERE __ts < began + {spec.size} AND t <= {reached} AND ({spec.condition or 'true'}) "
            f"GROUP BY {', '.join(['began', *spec.group_by])} HAVING {spec.having or 'true'} ORDER BY t"
        )
        .to_arrow_table()
    )
    ends = table["t"].to_pylist()
    steps = [next(n for n, mark in enumerate(marks) if mark is not None and end <= mark) for end in ends]
    return Answer(table.drop_columns(["t"]), [end - 1 for end in ends], steps, frozenset())


BOUNDS = {"began": "", "ended": " + {size}", "_ts": " + {size} - 1"}


@st.composite
def windowed(draw: st.DrawFn) -> Windowed:
    """A query: tumbling or hopping, also with gaps between windows and sizes that are no multiple of the slide."""
    written = draw(st.sampled_from(("tumble", "hop", "window")))
    size = draw(st.sampled_from((1, 2, 3, 5, 8))) * SECOND
    slide = size if written == "tumble" else draw(st.sampled_from((1, 2, 3, 7))) * SECOND
    groups = tuple(draw(st.lists(st.sampled_from(("A.k", "A.s", "A.ok")), max_size=2, unique=True)))
    distinct = bool(groups) and draw(st.integers(0, 4)) == 0
    calls = [] if distinct else draw(st.lists(st.sampled_from(CALLS), min_size=0 if groups else 1, max_size=3))
    items = [Item(text, f"g{n}") for n, text in enumerate(groups)] + [Item(c, f"a{n}") for n, c in enumerate(calls)]
    return Windowed(
        (SourceSpec("A", "A"),),
        tuple(items),
        group_by=groups,
        having="" if distinct else draw(st.sampled_from(HAVINGS)),
        size=size,
        slide=slide,
        written=written,
        distinct=distinct,
        condition=draw(st.sampled_from(CONDITIONS)),
    )


Expect = Callable[[Case], Answer]


def check_alone(data: st.DataObject, queries: st.SearchStrategy[QuerySpec], expect: Expect) -> None:
    """Fail unless a query over A alone answers in the very steps it must, over lanes, rescales and restarts."""
    shape = data.draw(shapes(2, LARGEST[1]), label="shape")
    declared, sequence = draw_rows(shape)
    steps = cut(declared, sequence, data.draw(cuts(), label="cuts"))
    case = Case(declared, steps, (Lifetime("q0", data.draw(queries, label="query")),), shape.in_order)
    sharing = data.draw(st.sampled_from(("auto", "off")), label="sharing")
    lanes = data.draw(st.sampled_from((1, 3)), label="lanes")
    actions = (*data.draw(rescales(case), label="rescales"), *data.draw(restarts(case), label="restarts"))
    answer = expect(case)
    for done in ((), actions):
        found = check(case, {"q0": answer}, None, done, sharing=sharing, lanes=lanes)
        assert_each_step_same(found.outputs["q0"], answer)


def check_beside_others(data: st.DataObject, queries: st.SearchStrategy[QuerySpec], expect: Expect) -> None:
    """Fail unless two such queries answer as they must beside a join that shares their stream and migrates."""
    shape = data.draw(shapes(2, LARGEST[2]), label="shape")
    declared, sequence = draw_rows(shape)
    steps = cut(declared, sequence, data.draw(cuts(), label="cuts"))
    others = (Lifetime("other", data.draw(queries, label="other")), Lifetime("join", JOIN))
    query = Lifetime("q0", data.draw(queries, label="query"))
    moves = [
        Migrate(step, "join", plan, "moving_state") for step, plan in enumerate(("(B A)", "(A B)")) if step < len(steps)
    ]
    case = Case(declared, steps, (query, *others))
    answers = {"q0": expect(case), "other": expect(replace(case, queries=(others[0], query)))}
    check(case, answers, None, moves, sharing=data.draw(st.sampled_from(("auto", "off")), label="sharing"))


@drawing(200)
@given(st.data())
def test_groups_are_those_of_the_oracle_in_the_step_that_passes_the_end(data: st.DataObject) -> None:
    check_alone(data, windowed(), expected)


@drawing(200)
@given(st.data())
def test_groups_are_the_same_beside_queries_that_share_the_stream_and_migrate(data: st.DataObject) -> None:
    check_beside_others(data, windowed(), expected)


JOIN = QuerySpec(
    (SourceSpec("A", "A"), SourceSpec("B", "B")), (Item("A.u"),), (Condition("A.k = B.k", ("A", "B")),), window=SECOND
)
