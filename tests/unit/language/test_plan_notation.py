from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.language.plan_notation import default_plan, parse_plan
from midstream.language.query import Query
from midstream.model.errors import PlanError
from midstream.plan.tree import Join, Leaf, MultiJoin, Plan
from tests.unit.language.schemas import parsed

FOUR = parsed("SELECT A.k FROM A [ROWS 1], B [ROWS 1], C [ROWS 1], D [ROWS 1]")
THREE = parsed("SELECT A.k FROM A [ROWS 1], B [ROWS 1], C [ROWS 1]")
EXCEPT = parsed("SELECT k FROM A [ROWS 1] EXCEPT ON (k) B [ROWS 1] EXCEPT ON (k) C [ROWS 1]")


def trees(aliases: tuple[str, ...]) -> st.SearchStrategy[Plan]:
    if len(aliases) == 1:
        return st.just(Leaf(aliases[0]))
    splits = st.integers(1, len(aliases) - 1)
    return splits.flatmap(lambda n: st.builds(Join, trees(aliases[:n]), trees(aliases[n:])))


@settings(max_examples=60, deadline=None)
@given(st.permutations("ABCD").flatmap(lambda order: trees(tuple(order))))
def test_trees_are_read_back(plan: Plan) -> None:
    assert parse_plan(plan.notation(), FOUR) == plan


def test_orders_are_read_back() -> None:
    plan = MultiJoin((("A", ("B", "C")), ("B", ("C", "A")), ("C", ("A", "B"))))
    assert parse_plan(plan.notation(), THREE) == plan
    assert parse_plan("[ a:b c|B:C A |c: A b]", THREE) == plan


def test_a_single_source() -> None:
    query = parsed("SELECT k FROM A")
    assert parse_plan(" a ", query) == Leaf("A") == default_plan(query)


def test_the_plan_of_a_difference_is_left_deep_from_the_minuend() -> None:
    assert parse_plan("((A C) B)", EXCEPT).notation() == "((A C) B)"
    for text in ("((B A) C)", "(A (B C))", "[A: B C | B: A C | C: A B]"):
        with pytest.raises(PlanError, match="left-deep and begins with A"):
            parse_plan(text, EXCEPT)


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("((A B) C)", "misses D", "line 1, column 10"),
        ("(((A B) C) X)", "unknown source 'X'", "line 1, column 12"),
        ("(((A B) C) A)", "A is named twice", "line 1, column 12"),
        ("(((A B) C) D", "expected ')', found the end", "line 1, column 13"),
        ("(((A B) C) D))", "does not end at ')'", "line 1, column 14"),
        ("((A B C) D)", "only two parts", "line 1, column 7"),
        ("(A)", "needs two parts", "line 1, column 1"),
        ("", "empty", "line 1, column 1"),
        ("()", "expected a source", "line 1, column 2"),
        ("[A: B C D | B: A C D | C: A B D]", "misses D", "line 1, column 33"),
        ("[A: B C D | B: A C | C: A B D | D: A B C]", "B does not probe D", "line 1, column 13"),
        ("[A: B B C D | B: A]", "probed twice", "line 1, column 7"),
        ("[A: A B C D]", "probed twice", "line 1, column 5"),
        ("[A B]", "expected ':'", "line 1, column 4"),
        ("eddy(A B C D)", "not built yet", "line 1, column 1"),
    ],
)
def test_errors(text: str, message: str, place: str) -> None:
    with pytest.raises(PlanError) as raised:
        parse_plan(text, FOUR)
    assert message in raised.value.message
    assert raised.value.place == f"plan, {place}"
    assert raised.value.remedy


@pytest.mark.parametrize(
    ("where", "plan"),
    [
        ("", "(((A B) C) D)"),
        ("WHERE A.k = C.k AND C.k = B.k", "(((A C) B) D)"),
        ("WHERE A.k = D.k AND A.v < C.v", "(((A C) D) B)"),
        ("WHERE A.k + B.k = C.k AND A.k = D.k", "(((A D) B) C)"),
    ],
)
def test_the_default_plan_avoids_cross_products(where: str, plan: str) -> None:
    query: Query = parsed(f"SELECT A.k FROM A, B, C, D {where} WINDOW 1 SECOND")
    assert default_plan(query).notation() == plan
