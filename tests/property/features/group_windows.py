"""Rows grouped by TUMBLE, HOP and Spark's `window`: the groups that DuckDB makes of all rows, once each, when final."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from tests.oracle.answer import Answer, connection, moment
from tests.oracle.arrival import arrive
from tests.oracle.spec import SECOND, Item, QuerySpec, SourceSpec
from tests.property.drive import Case
from tests.property.features import firsts
from tests.property.features.quantiles import quantiles

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


def calls() -> st.SearchStrategy[Item]:
    """Return what draws a call of any kind over the rows of a group of A."""
    return st.one_of(st.sampled_from(CALLS).map(Item), quantiles(), firsts.calls("A.__ts"))


@st.composite
def windowed(draw: st.DrawFn) -> Windowed:
    """A query: tumbling or hopping, also with gaps between windows and sizes that are no multiple of the slide."""
    written = draw(st.sampled_from(("tumble", "hop", "window")))
    size = draw(st.sampled_from((1, 2, 3, 5, 8))) * SECOND
    slide = size if written == "tumble" else draw(st.sampled_from((1, 2, 3, 7))) * SECOND
    groups = tuple(draw(st.lists(st.sampled_from(("A.k", "A.s", "A.ok")), max_size=2, unique=True)))
    distinct = bool(groups) and draw(st.integers(0, 4)) == 0
    asked = [] if distinct else draw(st.lists(calls(), min_size=0 if groups else 1, max_size=3))
    items = [Item(text, f"g{n}") for n, text in enumerate(groups)] + firsts.named(asked)
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
