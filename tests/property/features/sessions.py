"""Rows grouped by sessions: those that DuckDB finds among all rows, once each, in the step that passes their end."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from tests.oracle.answer import Answer, connection, moment
from tests.oracle.arrival import arrive
from tests.oracle.spec import SECOND, Item, QuerySpec, SourceSpec
from tests.property.drive import Case
from tests.property.features import firsts
from tests.property.features.group_windows import CONDITIONS, HAVINGS, calls


@dataclass(frozen=True)
class Sessions(QuerySpec):
    """A query over one stream whose rows are grouped by sessions; `gap` in microseconds."""

    gap: int = SECOND
    written: str = "session"
    condition: str = ""

    def cql(self) -> str:
        """The text in one of the ways in which users write it."""
        gap = f"{self.gap // 1000} MILLISECONDS"
        call, start, end, source = f"SESSION(A.ts, INTERVAL {gap})", "window_start", "window_end", "A"
        groups = (*self.group_by, call)
        if self.written == "spark":
            call, start, end = f"session_window(A.ts, '{gap}')", "session_window.start", "session_window.end"
            groups = (call, *self.group_by)
        elif self.written == "table":
            by = f" PARTITION BY {', '.join(name[2:] for name in self.group_by)}" if self.group_by else ""
            source = f"TABLE(SESSION(TABLE A{by}, DESCRIPTOR(ts), INTERVAL {gap}))"
            groups = ("window_start", "window_end", *self.group_by)
        elif self.written == "bounds":
            start, end = (f"SESSION_{bound}(A.ts, INTERVAL {gap})" for bound in ("START", "END"))
        items = [*[item.cql() for item in self.select], f"{start} AS began", f"{end} AS ended", "_ts"]
        where = f" WHERE {self.condition}" if self.condition else ""
        having = f" HAVING {self.having}" if self.having else ""
        return f"SELECT {', '.join(items)} FROM {source}{where} GROUP BY {', '.join(groups)}{having}"


def expected(case: Case) -> Answer:
    """Every session whose end the watermark has passed, in the step in which it has."""
    spec = case.queries[0].spec
    assert isinstance(spec, Sessions)
    arrivals = arrive(case.streams, case.steps, case.queries)
    marks = [arrivals.query_watermark(frozenset("A"), step) for step in range(len(case.steps))]
    reached = max((mark for mark in marks if mark is not None), default=0)
    connection().register("rows_of_a", arrivals.admitted["A"])
    within = f"({'PARTITION BY ' + ', '.join(spec.group_by) if spec.group_by else ''} ORDER BY __ts)"
    begins = f"CAST(coalesce(__ts - lag(__ts) OVER {within} > {spec.gap}, true) AS INTEGER) AS begins"
    rows = f"SELECT *, {begins} FROM rows_of_a AS A WHERE {spec.condition or 'true'}"
    numbered = f"SELECT *, sum(begins) OVER {within} AS number FROM ({rows}) AS A"
    items = [f"{item.sql or item.text} AS {item.name}" for item in spec.select]
    ended = f"max(__ts) + {spec.gap}"
    made = f"make_timestamp{'tz' if moment(case.streams, spec).tz else ''}"
    items += [f"{made}(min(__ts)) AS began", *(f"{made}({ended}) AS {name}" for name in ("ended", "_ts"))]
    table = (
        connection()
        .sql(
            f"SELECT * FROM (SELECT {', '.join(items)}, {ended} AS t FROM ({numbered}) AS A "
            f"GROUP BY {', '.join(['number', *spec.group_by])} HAVING {spec.having or 'true'}) "
            f"WHERE t < {reached} ORDER BY t"
        )
        .to_arrow_table()
    )
    ends = table["t"].to_pylist()
    steps = [next(n for n, mark in enumerate(marks) if mark is not None and end < mark) for end in ends]
    return Answer(table.drop_columns(["t"]), ends, steps, frozenset())


@st.composite
def sessions(draw: st.DrawFn) -> Sessions:
    """A query over sessions, also of all rows, and with gaps that are often reached exactly."""
    groups = tuple(draw(st.lists(st.sampled_from(("A.k", "A.s", "A.ok")), max_size=2, unique=True)))
    asked = draw(st.lists(calls(), min_size=not groups, max_size=3))
    items = [Item(text, f"g{n}") for n, text in enumerate(groups)] + firsts.named(asked)
    return Sessions(
        (SourceSpec("A", "A"),),
        tuple(items),
        group_by=groups,
        having=draw(st.sampled_from(HAVINGS)),
        gap=draw(st.sampled_from((1, 2, 3, 5))) * SECOND,
        written=draw(st.sampled_from(("session", "spark", "table", "bounds"))),
        condition=draw(st.sampled_from(CONDITIONS)),
    )
