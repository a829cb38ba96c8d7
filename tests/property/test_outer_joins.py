"""Outer, semi and anti joins: what DuckDB gives over the whole input, an unmatched row when no partner can come."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drawing import drawing
from tests.oracle.arrival import Lifetime
from tests.oracle.compare import assert_each_step_same
from tests.oracle.outer_spec import ANTI, OUTER, SEMI, OuterSpec
from tests.oracle.spec import SECOND, TIME, Condition, Item, QuerySpec, SourceSpec
from tests.property.cases import LARGEST, cuts, migrations, rescales, restarts, shapes
from tests.property.drive import Action, Case, check
from tests.property.queries import BANDS, EQUALITIES, SELECTIONS, THETAS, plans
from tests.property.rows import TIME_TYPES, cut, draw_rows

pytestmark = [pytest.mark.property, pytest.mark.timeout(7200)]


AFTER = ("B.u IS NULL", "A.u IS NULL OR A.k > 1", "COALESCE(A.k, 0) <= COALESCE(B.k, 1)", "A.k > 0", "B.s IS NOT NULL")
ITEMS = ("A.u", "B.u", "COALESCE(A.k, -1) + COALESCE(B.k, -1)", "A.s", "B.d", "B.ts", "A.ok")


@st.composite
def outer_joins(draw: st.DrawFn, *, interval: bool) -> OuterSpec:
    """A join of any kind, tied by any conditions, some of them over one side."""
    written = draw(st.sampled_from((*OUTER, *OUTER, *SEMI, *ANTI)))
    texts = draw(st.sampled_from((EQUALITIES, EQUALITIES, EQUALITIES, BANDS, THETAS, ("TRUE",))))
    on = [draw(st.sampled_from(texts)).format(a="A", b="B")]
    inner = draw(st.sampled_from(("k", "s"))) if written in ("IN", "NOT IN") else ""
    if inner:
        on = on[: draw(st.integers(0, 1))]
    for _ in range(draw(st.sampled_from((0, 0, 1, 2)))):
        on.append(draw(st.sampled_from(SELECTIONS)).format(a=draw(st.sampled_from("AB"))))
    outer = written in OUTER
    after = draw(st.lists(st.sampled_from(AFTER if outer else ("A.k > 0", "A.s IS NOT NULL")), max_size=1))
    chosen = draw(st.lists(st.sampled_from(ITEMS if outer else ("A.u", "A.s", "A.k + 1")), min_size=1, max_size=4))
    items = [Item(text, f"c{place}") for place, text in enumerate(chosen)]
    sizes = st.sampled_from((0, 1, 2, 3, 5, 8)).map(lambda size: size * SECOND)
    return OuterSpec(
        (SourceSpec("A", "A"), SourceSpec("B", "B")),
        (*items, Item(TIME)),
        tuple(Condition(text, ("A", "B")) for text in on),
        written=written,
        windows=(draw(sizes), draw(sizes)),
        # Other conditions on the timestamps may imply narrower windows.
        interval=interval and draw(st.booleans()) and not any(".ts" in text for text in on),
        after=tuple(f"({text})" for text in after),
        inner=inner,
        known=draw(st.sampled_from(("", "A", "B", "AB", "AB"))) if inner else "",
    )


@st.composite
def drawn_cases(draw: st.DrawFn) -> Case:
    """Rows cut into steps, and a join over them."""
    shape = draw(shapes(2, LARGEST[2]))
    declared, sequence = draw_rows(shape)
    steps = cut(declared, sequence, draw(cuts()), bare=draw(st.booleans()))
    # Intervals between times in nanoseconds imply windows that are a microsecond wider.
    query = draw(outer_joins(interval=shape.time in TIME_TYPES[:2]))
    # A match may be newer than the watermark, which unmatched rows wait for: only within a step are both in order.
    return Case(declared, steps, (Lifetime("q0", query),), shape.in_order and query.written not in OUTER)


@drawing(200)
@given(st.data())
def test_results_are_those_of_the_oracle_in_the_step_that_can_know_them(data: st.DataObject) -> None:
    case = data.draw(drawn_cases(), label="case")
    answer, plan = case.expected()["q0"], data.draw(plans(case.queries[0].spec), label="plan")
    lanes = data.draw(st.sampled_from((1, 3)), label="lanes")
    found = check(case, {"q0": answer}, {"q0": plan}, lanes=lanes)
    assert_each_step_same(found.outputs["q0"], answer)


@drawing(200)
@given(st.data())
def test_results_are_the_same_amid_migrations_rescales_and_restarts(data: st.DataObject) -> None:
    case = data.draw(drawn_cases(), label="case")
    actions: tuple[Action, ...] = data.draw(migrations(case), label="migrations")
    if data.draw(st.booleans(), label="disturbed"):
        actions += (*data.draw(rescales(case), label="rescales"), *data.draw(restarts(case), label="restarts"))
    lanes = data.draw(st.sampled_from((1, 3)), label="lanes")
    answer = case.expected()["q0"]
    found = check(case, {"q0": answer}, None, actions, lanes=lanes)
    assert_each_step_same(found.outputs["q0"], answer)


@drawing(100)
@given(st.data())
def test_results_are_the_same_beside_an_aggregate_over_the_same_join(data: st.DataObject) -> None:
    """Which keeps all results of the join in a state that begins with the same step."""
    case = data.draw(drawn_cases(), label="case")
    query = case.queries[0]
    assert isinstance(query.spec, OuterSpec)
    sized = [replace(s, range=size) for s, size in zip(query.spec.sources, query.spec.windows, strict=True)]
    items = (Item("A.k"), Item("COUNT(*)", "n"), Item(TIME))
    counted = QuerySpec(tuple(sized), items, query.spec.where, group_by=("A.k",), every=2 * SECOND)
    beside = replace(case, queries=(query, Lifetime("sums", counted)))
    actions = data.draw(migrations(beside), label="migrations")
    sharing = data.draw(st.sampled_from(("auto", "off")), label="sharing")
    check(beside, beside.expected(), None, actions, sharing=sharing)
