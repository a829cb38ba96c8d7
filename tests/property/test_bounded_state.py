"""Invariant 7: state never outlives what the watermark allows."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drawing import drawing
from tests.oracle.answer import connection, width
from tests.oracle.arrival import Arrivals, Lifetime, Step, arrive
from tests.oracle.spec import SECOND, SourceSpec
from tests.property.cases import Drawn, cases, migrations
from tests.property.drive import Case, run
from tests.property.queries import plans
from tests.property.rows import BEGIN, table

pytestmark = pytest.mark.property
FAR = 200 * SECOND


@drawing(100, soak=20, shrink=True)
@given(st.data())
def test_state_is_bounded_by_the_watermark(data: st.DataObject) -> None:
    """After a step no more rows are kept than could still join one that may come; after a long time, none."""
    drawn: Drawn = data.draw(cases(sources=4, order=data.draw(st.sampled_from(("in", "timely")))))
    query = drawn.case.queries[0]
    plan = {"q0": data.draw(plans(query.spec), label="plan")}
    actions = data.draw(migrations(drawn.case, 1)) if data.draw(st.booleans()) else ()
    steps = (*drawn.case.steps, *later(drawn.case))
    case = replace(drawn.case, steps=steps)
    last = data.draw(st.integers(1, len(steps)), label="last step")
    arrivals = arrive(case.streams, steps[:last], case.queries)
    kept = run(case, plan, actions, last=last).engine.metrics()["state_rows"]
    assert kept <= most_rows(query, arrivals, last), f"{kept} rows after step {last - 1}"
    kept = run(case, plan, actions).engine.metrics()["state_rows"]
    arrivals = arrive(case.streams, steps, case.queries)
    assert kept <= most_rows(query, arrivals, len(steps)), f"{kept} rows after a long time"


def later(case: Case) -> list[Step]:
    """Two steps, long after all others, that bring one row for each stream that joins nothing."""
    steps: list[Step] = []
    for number in (1, 2):
        row = {"u": -number, "ts": BEGIN + FAR * number}
        steps.append({s.name: table(s, [{**dict.fromkeys(s.schema.names), **row}]) for s in case.streams})
    return steps


def most_rows(query: Lifetime, arrivals: Arrivals, steps: int) -> int:
    """How many rows and combinations a plan may hold: those alive at the watermark before the last step, for every
    subset of the sources, of which a plan holds some."""
    sources = query.spec.all_sources
    relations = [alive(query, source, arrivals, steps - 1) for source in sources]
    total = 0
    asks = query.spec.every is not None or bool(query.spec.subtracted)
    # Such a query takes its rows in order of time: until the watermark has passed them they wait, before any selection.
    waits = asks and any(source.rows is not None for source in sources)
    for source, relation in zip(sources, relations, strict=True):
        # A row that no selection lets pass may still push another out of the window.
        counted = waits or source.rows is not None
        total += relation.num_rows if counted else combinations(query, [source], [relation])
    for size in range(2, len(sources) + 1):
        for picked in itertools.combinations(range(len(sources)), size):
            total += combinations(query, [sources[p] for p in picked], [relations[p] for p in picked])
    return total


def alive(query: Lifetime, source: SourceSpec, arrivals: Arrivals, step: int) -> pa.Table:
    """The rows of a source that at the beginning of a step could still join or count, and those of the step."""
    rows = arrivals.admitted[source.stream]
    watermark = arrivals.query_watermark(query.spec.streams, step - 1)
    if source.rows is not None and query.spec.every is None and not query.spec.subtracted:
        arrived = pc.sum(pc.less(rows["__step"], step)).as_py() or 0
        return rows.filter(pc.greater(rows["__number"], arrived - source.rows))
    if watermark is None:
        return rows
    if source.rows is not None:
        ordered = rows.sort_by([("__ts", "ascending"), ("__arrival", "ascending")])
        passed = pc.sum(pc.less(ordered["__ts"], watermark)).as_py() or 0
        return ordered.slice(max(0, passed - source.rows))
    size = width(query, source)
    return rows if size is None else rows.filter(pc.greater_equal(rows["__ts"], watermark - size - 1))


def combinations(query: Lifetime, sources: list[SourceSpec], relations: list[pa.Table]) -> int:
    """How many combinations of these rows satisfy all conditions among them."""
    aliases = {source.alias for source in sources}
    texts = [f"({c.sql or c.text})" for c in query.spec.where if set(c.aliases) <= aliases]
    times = ", ".join(f"{s.alias}.__ts" for s in sources)
    for number, (source, rows) in enumerate(zip(sources, relations, strict=True)):
        connection().register(f"alive_{number}", rows)
        if width(query, source) is not None:
            texts.append(f"greatest({times}) - {source.alias}.__ts <= {width(query, source)}")
    tables = ", ".join(f'alive_{number} AS "{source.alias}"' for number, source in enumerate(sources))
    sql = f"SELECT count(*) FROM {tables}" + (f" WHERE {' AND '.join(texts)}" if texts else "")
    return int(connection().sql(sql).fetchall()[0][0])
