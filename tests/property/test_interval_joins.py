"""Interval joins: how far the times of two streams may be apart is said by conditions, and no window is written."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drawing import drawing
from tests.oracle.arrival import Lifetime
from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec
from tests.property.cases import LARGEST, Drawn, cuts, shapes
from tests.property.drive import Case, check
from tests.property.queries import plans
from tests.property.rows import cut, draw_rows

pytestmark = [pytest.mark.property, pytest.mark.timeout(7200)]


WRITTEN = (
    "{a}.ts BETWEEN {b}.ts - INTERVAL {low} SECONDS AND {b}.ts + INTERVAL {high} SECONDS",
    "{a}.ts >= {b}.ts - INTERVAL {low} SECONDS AND {a}.ts <= {b}.ts + INTERVAL {high} SECONDS",
    "{b}.ts - {a}.ts <= INTERVAL {low} SECONDS AND {a}.ts - {b}.ts < INTERVAL {high} SECONDS",
    "ABS({a}.ts - {b}.ts) <= INTERVAL {high} SECONDS",
    "{a}.ts = {b}.ts",
)
OF_ORACLE = {WRITTEN[3]: "{a}.ts BETWEEN {b}.ts - INTERVAL {high} SECONDS AND {b}.ts + INTERVAL {high} SECONDS"}
"""DuckDB has no ABS of an INTERVAL."""

TIES = ("{a}.k = {b}.k", "{a}.k = {b}.k", "{a}.k < {b}.k", "{a}.s = {b}.s")


@st.composite
def interval_joins(draw: st.DrawFn, names: str) -> QuerySpec:
    """A join whose sources are tied in time to one before, rarely with a window of their own beside it."""
    sources, where = [], list[Condition]()
    for place, name in enumerate(names):
        sized = draw(st.integers(0, 4)) == 0
        sources.append(SourceSpec(name, name, range=draw(st.sampled_from((2, 5))) * SECOND if sized else None))
        if not place:
            continue
        one, other = draw(st.permutations((name, names[draw(st.integers(0, place - 1))])))
        low, high = draw(st.sampled_from((0, 1, 3, 8))), draw(st.sampled_from((0, 2, 5)))
        texts = draw(st.sampled_from(WRITTEN)), draw(st.sampled_from(TIES))
        for text in texts:
            cql, sql = (t.format(a=one, b=other, low=low, high=high) for t in (text, OF_ORACLE.get(text, text)))
            where.append(Condition(cql, (one, other), sql))
    items = (*[Item(f"{name}.u", f"u{name}") for name in names], Item("_ts"))
    return QuerySpec(tuple(sources), items, tuple(draw(st.permutations(where))))


@st.composite
def drawn_cases(draw: st.DrawFn) -> Drawn:
    """Rows whose times are TIMESTAMPs, cut into steps, and an interval join over them."""
    names = "ABCD"[: draw(st.sampled_from((2, 3, 3, 4)))]
    drawn = draw(shapes(len(names), LARGEST[len(names)]))
    shape = replace(drawn, time=draw(st.sampled_from((pa.timestamp("us"), pa.timestamp("us", "UTC")))))
    declared, sequence = draw_rows(shape)
    steps = cut(declared, sequence, draw(cuts()))
    case = Case(declared, steps, (Lifetime("q0", draw(interval_joins(names))),), shape.in_order)
    return Drawn(case, sequence, shape, case.expected())


@drawing(200)
@given(st.data())
def test_answers_are_those_without_any_window(data: st.DataObject) -> None:
    drawn = data.draw(drawn_cases())
    plan = data.draw(st.one_of(st.none(), plans(drawn.spec())), label="plan")
    lanes = data.draw(st.sampled_from((1, 3)), label="lanes")
    check(drawn.case, drawn.expected, {} if plan is None else {"q0": plan}, lanes=lanes, label=f"plan {plan}")
