from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.logical.query import Query
from midstream.model.errors import PlanError
from midstream.plan.notation import default_plan, parse_plan
from midstream.plan.tree import STAIRS, Eddy, Form, Join, Leaf, MultiJoin, Plan
from tests.unit.sql.schemas import parsed

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


def test_eddies_are_read_back() -> None:
    for text, plan in {
        "eddy(A B C)": Eddy(("A", "B", "C")),
        "eddy:rank(C A B)": Eddy(("C", "A", "B"), "rank"),
        "stairs((A (C B)))": Form(STAIRS, Join(Leaf("A"), Join(Leaf("C"), Leaf("B")))),
    }.items():
        assert parse_plan(text, THREE) == plan
        assert plan.notation() == text
    assert parse_plan(" EDDY : Lottery (a b C ) ", THREE) == Eddy(("A", "B", "C"))
    assert parse_plan("Stairs ( (( a b)c ) )", THREE).notation() == "stairs(((A B) C))"


def test_sources_may_be_called_so() -> None:
    query = parsed("SELECT eddy.k FROM A AS eddy [ROWS 1], B AS stairs [ROWS 1]")
    for text in ("(eddy stairs)", "(stairs eddy)", "eddy(eddy stairs)", "stairs((stairs eddy))"):
        assert parse_plan(text, query).notation() == text


def test_names_that_need_quotes_are_read_back() -> None:
    query = parsed('SELECT "a b".k FROM A AS "a b" [ROWS 1], B AS "x""(y" [ROWS 1], C AS "p|q" [ROWS 1]')
    plans = (
        '(("a b" "x""(y") "p|q")',
        '["a b": "x""(y" "p|q" | "x""(y": "a b" "p|q" | "p|q": "a b" "x""(y"]',
        'eddy:rank("p|q" "a b" "x""(y")',
        'stairs(("a b" ("x""(y" "p|q")))',
    )
    for text in plans:
        assert parse_plan(text, query).notation() == text


@pytest.mark.parametrize("text", ["eddy(A)", "eddy:rank(A)", "eddy()"])
def test_an_eddy_routes_between_sources(text: str) -> None:
    with pytest.raises(PlanError, match="two sources"):
        parse_plan(text, parsed("SELECT k FROM A"))


def test_a_single_source() -> None:
    query = parsed("SELECT k FROM A")
    assert parse_plan(" a ", query) == Leaf("A") == default_plan(query)


def test_the_plan_of_a_difference_is_left_deep_from_the_minuend() -> None:
    assert parse_plan("((A C) B)", EXCEPT).notation() == "((A C) B)"
    restricted = ("((B A) C)", "(A (B C))", "[A: B C | B: A C | C: A B]", "eddy(A B C)", "stairs(((A B) C))")
    for text in restricted:
        with pytest.raises(PlanError, match="left-deep and begin with A"):
            parse_plan(text, EXCEPT)


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("((A B) C)", "lacks D", "line 1, column 10"),
        ("(((A B) C) X)", "unknown source 'X'", "line 1, column 12"),
        ("(((A B) C) A)", "A is named twice", "line 1, column 12"),
        ("(((A B) C) D", "expected ')', found the end", "line 1, column 13"),
        ("(((A B) C) D))", "should end before ')'", "line 1, column 14"),
        ("((A B C) D)", "a third part", "line 1, column 7"),
        ("(A)", "needs two parts", "line 1, column 1"),
        ("", "empty", "line 1, column 1"),
        ("()", "expected a source", "line 1, column 2"),
        ("[A: B C D | B: A C D | C: A B D]", "lacks D", "line 1, column 33"),
        ("[A: B C D | B: A C | C: A B D | D: A B C]", "B does not probe D", "line 1, column 13"),
        ("[A: B B C D | B: A]", "probed twice", "line 1, column 7"),
        ("[A: A B C D]", "probed twice", "line 1, column 5"),
        ("[A B]", "expected ':'", "line 1, column 4"),
        ("eddy(A B C)", "lacks D", "line 1, column 12"),
        ("eddy(A B C D", "expected ')', found the end", "line 1, column 13"),
        ("eddy(A B A C D)", "A is named twice", "line 1, column 10"),
        ("eddy(A (B C) D)", "expected a source, found '('", "line 1, column 8"),
        ("eddy(A B C D) A", "should end before 'A'", "line 1, column 15"),
        ("eddy:chance(A B C D)", "an eddy cannot route by 'chance'", "line 1, column 6"),
        ("eddy:(A B C D)", "an eddy cannot route by '('", "line 1, column 6"),
        ("stairs(A B C D)", "a tree of pairs", "line 1, column 8"),
        ("stairs([A: B C D | B: A C D | C: A B D | D: A B C])", "a tree of pairs", "line 1, column 8"),
        ("stairs(eddy(A B C D))", "a tree of pairs", "line 1, column 8"),
        ("stairs((((A B) C) D)", "expected ')', found the end", "line 1, column 21"),
        ("stairs:rank((((A B) C) D))", "expected '(', found ':'", "line 1, column 7"),
        ("stairs(((A B) C))", "lacks D", "line 1, column 18"),
        ("(eddy(A B) (C D))", "unknown source 'eddy'", "line 1, column 2"),
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
