"""Answers of windows, ranked or grouped anew by the time that they have, are DuckDB's, in the steps of the windows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa
from hypothesis import strategies as st

from tests.oracle.answer import Answer, connection
from tests.oracle.spec import Item, QuerySpec
from tests.property.drive import Case
from tests.property.features.group_windows import expected as expected_of_windows
from tests.property.features.group_windows import windowed
from tests.property.features.sessions import Sessions
from tests.property.features.sessions import expected as expected_of_sessions

ASKED = {
    "rank": "SELECT *, {f}() OVER (PARTITION BY {by} ORDER BY a0 {d}) AS rn FROM {x} QUALIFY rn <= 2",
    "ranked": "SELECT * FROM (SELECT *, {f}() OVER (PARTITION BY {by} ORDER BY a0 {d}) AS rn FROM {x}) WHERE rn <= 2",
    "group": "SELECT {by}, MAX(a0) AS m, COUNT(*) AS n FROM {x} GROUP BY {by}",
    "distinct": "SELECT DISTINCT a0, {by} FROM {x}",
}
"""By name what is asked of the answers; rows of equal rank are all taken, so that the oracle needs no further order."""

TOGETHER = {"rank": "{below} QUALIFY rn <= 2", "ranked": "SELECT * FROM ({below}) WHERE rn <= 2"}
"""The same where the SELECT that groups has the rank."""


@dataclass(frozen=True)
class Above(QuerySpec):
    """A query over the answers of one with windows to group by."""

    below: QuerySpec = field(kw_only=True)
    asked: str = "group"
    function: str = "RANK"
    by: tuple[str, ...] = ("ended",)
    descending: bool = False
    together: str = ""

    def cql(self) -> str:
        """The text, with the query below in brackets; or with the rank in it, by the names of its items or by these."""
        below = self.below.cql().replace(", _ts FROM", " FROM")
        if not self.together or self.asked not in TOGETHER:
            return self.over(f"({below}) AS x")
        texts = {item.name: item.text for item in self.below.select} if self.together == "texts" else {}
        by, key = ", ".join(texts.get(name, name) for name in self.by), texts.get("a0", "a0")
        rank = f"{self.function}() OVER (PARTITION BY {by} ORDER BY {key}{' DESC' if self.descending else ''}) AS rn"
        return TOGETHER[self.asked].format(below=below.replace(" FROM", f", {rank} FROM", 1))

    def over(self, source: str) -> str:
        """What is asked of a source."""
        down = "DESC" if self.descending else ""
        return ASKED[self.asked].format(f=self.function, by=", ".join(self.by), d=down, x=source)


def expected(case: Case) -> Answer:
    """What DuckDB makes of the answers of the query below."""
    spec = case.queries[0].spec
    assert isinstance(spec, Above)
    below = replace(case, queries=(replace(case.queries[0], spec=spec.below),))
    found = (expected_of_sessions if isinstance(spec.below, Sessions) else expected_of_windows)(below)
    connection().register("below", found.table.drop_columns(["_ts"]))
    whole = connection().sql(spec.over("below AS x")).to_arrow_table()
    shift = 0 if isinstance(spec.below, Sessions) else 1
    times = [int(t.timestamp()) * 1_000_000 + t.microsecond - shift for t in whole["ended"].to_pylist()]
    steps = dict(zip(found.times, found.steps, strict=True))
    order = sorted(range(len(times)), key=times.__getitem__)
    return Answer(
        whole.take(pa.array(order, pa.int64())),
        [times[n] for n in order],
        [steps[times[n]] for n in order],
        frozenset(),
    )


@st.composite
def above(draw: st.DrawFn, below: st.SearchStrategy[QuerySpec]) -> Above:
    """A query over the answers of another, which has an item `a0`."""
    first = draw(below.filter(lambda spec: not getattr(spec, "distinct", False)))
    groups = tuple(item for item in first.select if item.name.startswith("g"))
    first = replace(first, select=(*groups, Item(draw(st.sampled_from(("COUNT(*)", "SUM(A.n)", "MIN(A.s)"))), "a0")))
    by = draw(st.sampled_from((("ended",), ("began", "ended"))))
    return Above(
        first.sources,
        (),
        below=first,
        asked=draw(st.sampled_from(sorted(ASKED))),
        function=draw(st.sampled_from(("RANK", "DENSE_RANK"))),
        by=(*by, *(("g0",) if groups and draw(st.integers(0, 3)) == 0 else ())),
        descending=draw(st.booleans()),
        together=draw(st.sampled_from(("", "names", "texts"))),
    )


@dataclass(frozen=True)
class Together(QuerySpec):
    """The answers of several queries with windows to group by, with a set operation between them."""

    parts: tuple[QuerySpec, ...] = ()
    operation: str = "UNION"

    def cql(self) -> str:
        """The text, in which the operation stands between those of the queries."""
        return f" {self.operation} ".join(part.cql().replace(", _ts FROM", " FROM") for part in self.parts)


def expected_together(case: Case) -> Answer:
    """What DuckDB's operation makes of the answers of all."""
    spec = case.queries[0].spec
    assert isinstance(spec, Together)
    alone = [replace(case, queries=(replace(case.queries[0], spec=part),)) for part in spec.parts]
    answers = [expected_of_windows(one) for one in alone]
    for number, found in enumerate(answers):
        connection().register(f"part{number}", found.table)
    texts = [f"SELECT * FROM part{number}" for number in range(len(answers))]
    rows = connection().sql(f" {spec.operation} ".join(texts)).to_arrow_table().sort_by("_ts")
    steps = {time: step for found in answers for time, step in zip(found.times, found.steps, strict=True)}
    times = rows["_ts"].cast(pa.int64()).to_pylist()
    return Answer(rows.drop_columns(["_ts"]), times, [steps[time] for time in times], frozenset())


@st.composite
def together(draw: st.DrawFn, operation: str) -> Together:
    """Two or three queries with windows over A, with the same columns; of equal windows in most, so that rows meet."""
    first = draw(windowed().filter(lambda spec: not spec.distinct))
    groups = tuple(item for item in first.select if item.name.startswith("g"))
    first = replace(first, select=(*groups, Item("COUNT(*)", "a0")))
    others = draw(st.lists(windowed(), min_size=1, max_size=2))
    size, slide = first.size, first.slide
    if draw(st.integers(0, 3)):
        others = [replace(one, size=size, slide=slide, written=first.written) for one in others]
    parts = [replace(one, select=first.select, group_by=first.group_by, distinct=False) for one in others]
    return Together(first.sources, (), parts=(first, *parts), operation=operation)
