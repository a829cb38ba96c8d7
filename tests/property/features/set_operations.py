"""UNION, INTERSECT and EXCEPT of queries that each select their time are DuckDB's, while the queries below migrate."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
from hypothesis import strategies as st
from typing_extensions import override

from tests.oracle.answer import Answer, answer, connection
from tests.oracle.arrival import Lifetime, arrive
from tests.oracle.spec import QuerySpec
from tests.property.drive import Case
from tests.property.test_answers_as_streams import first_levels


@dataclass(frozen=True)
class Together(QuerySpec):
    """A set operation between queries, written out or by their names."""

    parts: tuple[QuerySpec, ...] = ()
    operation: str = "INTERSECT"
    named: tuple[str, ...] = ()

    @override
    def cql(self) -> str:
        texts = [f"SELECT k, t FROM {name}" for name in self.named] or [part.cql() for part in self.parts]
        return f" {self.operation} ".join(texts)


OPERATIONS = ("UNION", "INTERSECT", "EXCEPT")


@st.composite
def together(draw: st.DrawFn) -> Together:
    """Two or three queries of streams, with a set operation between them."""
    drawn = draw(st.lists(first_levels(("join", "theta", "filter", "filter")), min_size=2, max_size=3))
    parts = tuple(replace(one, select=(one.select[0], one.select[-1])) for one in drawn)
    return Together((), (), parts=parts, operation=draw(st.sampled_from(OPERATIONS)))


def expected(case: Case) -> Answer:
    """Return what DuckDB's operation makes of the answers of the parts."""
    spec = case.queries[0].spec
    assert isinstance(spec, Together)
    return expected_of(case, spec, tuple(Lifetime(f"part{n}", part) for n, part in enumerate(spec.parts)))[0]


def expected_of(case: Case, spec: Together, alone: tuple[Lifetime, ...]) -> tuple[Answer, dict[str, Answer]]:
    """What DuckDB's operation makes of the answers of the queries up to where all their watermarks have passed; and
    these answers.
    """
    arrivals = arrive(case.streams, case.steps, alone)
    answers = {query.name: answer(case.streams, arrivals, query) for query in alone}
    kinds = [found.table.schema.field("t").type for found in answers.values()]
    kind = next((kind for kind in kinds if kind.tz), kinds[0])  # If one has a zone, all are given one.
    marks = [[arrivals.query_watermark(query.spec.streams, step) for query in alone] for step in range(len(case.steps))]
    for name, found in answers.items():
        connection().register(name, found.table.set_column(1, "t", found.table["t"].cast(kind)))
    whole = f" {spec.operation} ".join(f"SELECT k, t FROM {name}" for name in answers)
    rows = connection().sql(whole).to_arrow_table().sort_by("t")
    rows = rows.set_column(1, "t", rows["t"].cast(kind))
    times = rows["t"].cast(pa.int64()).to_pylist()

    def step_of(time: int) -> int | None:
        passed = (n for n, found in enumerate(marks) if all(mark is not None and mark > time for mark in found))
        return next(passed, None)

    steps = [step_of(time) for time in times]
    kept = [n for n, step in enumerate(steps) if step is not None]
    whole_answer = Answer(
        rows.take(pa.array(kept, pa.int64())),
        [times[n] for n in kept],
        [step for step in steps if step is not None],
        frozenset(),
    )
    return whole_answer, answers
