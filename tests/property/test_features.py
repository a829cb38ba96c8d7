"""Queries of every feature have DuckDB's answers, alone and beside each other, amid migrations and restarts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from midstream.logical.query import query_of
from tests.drawing import drawing
from tests.oracle.arrival import Lifetime
from tests.oracle.compare import assert_each_step_same
from tests.oracle.spec import QuerySpec, SourceSpec
from tests.property.cases import MOST_RESULTS, cuts, rescales, restarts, shapes, strategies
from tests.property.drive import Action, Case, Migrate, check, start
from tests.property.features import FEATURES, Feature
from tests.property.queries import plans
from tests.property.rows import TIME_TYPES, cut, draw_rows

pytestmark = [pytest.mark.property, pytest.mark.timeout(7200)]


@st.composite
def drawn_cases(draw: st.DrawFn, features: Sequence[Feature]) -> Case:
    """Rows cut into steps, and a query of each feature."""
    shape = draw(shapes(max(one.streams for one in features), min(one.largest for one in features)))
    if any(one.timestamps for one in features):
        shape = replace(shape, time=draw(st.sampled_from(TIME_TYPES[:2])))
    declared, sequence = draw_rows(shape)
    steps = cut(declared, sequence, draw(cuts()), bare=draw(st.booleans()))
    lives = [Lifetime(f"q{number}", draw(one.specs(shape))) for number, one in enumerate(features)]
    return Case(declared, steps, tuple(lives))


@st.composite
def moves(draw: st.DrawFn, case: Case) -> tuple[Action, ...]:
    """Migrations of what joins in a query: of itself, or of its parts."""
    engine = start(case.streams)
    for query in case.queries:
        engine.add_query(query.name, query.spec.cql())
    read = {name: query_of(entry).aliases for name, entry in engine.manifest.queries.items()}
    able = sorted(name for name, aliases in read.items() if len(aliases) > 1)
    found: list[Action] = []
    for _ in range(draw(st.integers(0, 3)) if able else 0):
        name = draw(st.sampled_from(able))
        plan = draw(plans(QuerySpec(tuple(SourceSpec(alias, alias) for alias in read[name]), ())))
        step = draw(st.integers(0, len(case.steps) - 1))
        found.append(Migrate(step, name, plan, draw(st.sampled_from(strategies()))))
    return tuple(found)


@st.composite
def disturbances(draw: st.DrawFn, case: Case) -> tuple[Action, ...]:
    """Migrations of what joins in the queries; in half the cases restarts and other numbers of lanes too."""
    found = draw(moves(case))
    return (*found, *draw(rescales(case)), *draw(restarts(case, most=2))) if draw(st.booleans()) else found


def hold(data: st.DataObject, features: Sequence[Feature]) -> None:
    """Fail unless the queries answer as they must, each by its own oracle."""
    case, expected = data.draw(drawn_cases(features), label="case"), {}
    for one, life in zip(features, case.queries, strict=True):
        expected[life.name] = one.expect(replace(case, queries=(life,)))
        assume(expected[life.name].table.num_rows <= MOST_RESULTS // 4)
    actions = data.draw(disturbances(case), label="actions")
    lanes = data.draw(st.sampled_from((1, 3)), label="lanes")
    sharing = data.draw(st.sampled_from(("auto", "off")), label="sharing")
    label = "; ".join(life.spec.cql() for life in case.queries)
    found = check(case, expected, None, actions, lanes=lanes, sharing=sharing, label=label)
    for one, life in zip(features, case.queries, strict=True):
        if one.at_once:
            assert_each_step_same(found.outputs[life.name], expected[life.name], label)


@pytest.mark.parametrize("name", FEATURES)
@drawing(120)
@given(data=st.data())
def test_each_alone(name: str, data: st.DataObject) -> None:
    hold(data, [FEATURES[name]])


@drawing(500, soak=20)
@given(data=st.data())
def test_some_beside_each_other(data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(sorted(FEATURES)), min_size=2, max_size=3), label="features")
    hold(data, [FEATURES[name] for name in chosen])
