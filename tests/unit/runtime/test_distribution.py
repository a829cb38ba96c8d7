"""A lane key serves every operator of every plan, and operators without a common key say that they need one lane."""

from __future__ import annotations

import pytest

import midstream as ms
from midstream.plan.key_classes import key_classes
from midstream.runtime.lane_key import SINGLE
from midstream.sql.parse import bind_query
from midstream.units.program import compile_program

CLASS = "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k AND A.v = B.v WINDOW 5 SECONDS"
CHAINED = "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.v = C.v WINDOW 5 SECONDS"
BAND = "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k AND A.v - C.v BETWEEN -1 AND 1 WINDOW 5 SECONDS"
FORMS = ["((A B) C)", "(A (B C))", "((A C) B)", "[A: B C | B: A C | C: B A]", "eddy(A B C)", "stairs(((A B) C))"]


def engine(sql: str, plan: str) -> ms.Engine:
    made = ms.Engine(lanes=3)
    for name in "ABC":
        made.create_stream(name, "k BIGINT, v BIGINT, ts TIMESTAMP", "ts")
    made.add_query("q", sql, plan=plan)
    made.push()
    return made


@pytest.mark.parametrize("plan", FORMS)
@pytest.mark.parametrize("sql", [CLASS, BAND])
def test_a_lane_key_serves_every_operator_of_every_plan(sql: str, plan: str) -> None:
    manifest = engine(sql, plan).manifest
    group = manifest.queries["q"].group
    assert group != SINGLE
    program = compile_program(manifest, group, {})
    (stage,), (unit,) = program.stages, program.units
    assert stage.lane_key is not None
    common = next(c for c in key_classes(unit.query) if len(c.members) == len(unit.query.sources))
    key = {member.text(): member for member in common.members}
    operators = [op for root in unit.box(unit.plan).roots for op in root.walk()]
    assert all(operator.distribution().allows(key) for operator in operators)


@pytest.mark.parametrize("plan", FORMS)
def test_a_join_without_a_common_key_says_that_it_needs_one_lane(plan: str) -> None:
    manifest = engine(CHAINED, plan).manifest
    assert manifest.queries["q"].group == SINGLE
    program = compile_program(manifest, SINGLE, {})
    (stage,), (unit,) = program.stages, program.units
    assert stage.lane_key is None
    query = bind_query(manifest, CHAINED)
    some_key = {side.text(): side for p in query.predicates for side in p.expression.columns() if side.name == "k"}
    operators = [op for root in unit.box(unit.plan).roots for op in root.walk()]
    assert all(operator.distribution().allows(None) for operator in operators)
    assert not all(operator.distribution().allows(some_key) for operator in operators)
