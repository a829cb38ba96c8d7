"""Edges: the best index between two sides, and what is left over for it to decide."""

from __future__ import annotations

import pytest

from midstream.operators.join_condition import JoinCondition, join_condition
from tests.unit.building import query


def between(where: str, left: str, right: str) -> JoinCondition:
    aliases = sorted(left + right)
    sql = f"SELECT {aliases[0]}.k FROM {', '.join('ABCD')} WHERE {where} WINDOW 5 SECONDS"
    return join_condition(query(sql), frozenset(left), frozenset(right))


def texts(expressions: object) -> list[str]:
    assert isinstance(expressions, tuple)
    return [e.text() for e in expressions]


def test_an_equality_of_one_word_is_a_hash_that_needs_no_check() -> None:
    found = between("A.k = B.k", "A", "B")
    assert (found.index, texts(found.left_key), texts(found.right_key)) == ("hash", ["A.k"], ["B.k"])
    assert found.verify == ()
    assert found.residual == ()


def test_sides_follow_the_question_not_the_text() -> None:
    found = between("A.k = B.k", "B", "A")
    assert (texts(found.left_key), texts(found.right_key)) == (["B.k"], ["A.k"])


def test_codes_of_texts_and_of_several_columns_are_checked() -> None:
    assert texts(between("A.s = B.s", "A", "B").verify) == ["eq(A.s, B.s)"]
    both = between("A.k = B.k AND A.j = B.j", "A", "B")
    assert texts(both.left_key) == ["A.j", "A.k"]
    assert texts(both.verify) == ["eq(A.j, B.j)", "eq(A.k, B.k)"]


def test_a_hash_comes_before_a_band_and_a_band_before_a_scan() -> None:
    assert between("A.k = B.k AND A.v - B.v < 1 AND A.v + B.v > 2", "A", "B").index == "hash"
    assert between("A.v < B.v AND A.v * B.v > 2", "A", "B").index == "band"
    assert between("A.v * B.v > 2", "A", "B").index == "scan"
    assert between("A.k = C.j", "A", "B").index == "scan"


def test_other_predicates_are_residual_and_so_is_the_band_itself() -> None:
    assert texts(between("A.k = B.k AND A.v < B.v", "A", "B").residual) == ["lt(A.v, B.v)"]
    assert texts(between("A.v < B.v AND A.v * B.v > 2", "A", "B").residual) == [
        "lt(A.v, B.v)",
        "gt(mul(A.v, B.v), 2.0::double)",
    ]


def test_the_narrowest_band_is_searched() -> None:
    found = between("A.v < B.v AND A.v - B.v BETWEEN -9 AND 9 AND A.k - B.k BETWEEN 0 AND 1", "A", "B")
    assert (texts(found.left_key), texts(found.right_key)) == (["A.k"], ["B.k"])
    assert (found.low, found.high) == (0, 1)
    assert len(found.residual) == 3


@pytest.mark.parametrize(
    ("where", "low", "high"),
    [("A.k - B.k BETWEEN 1 AND 3", 1, 3), ("A.k > B.k", 1, None), ("A.k <= B.k", None, 0), ("A.k - B.k < 5", None, 4)],
)
def test_a_band_turned_round_has_its_bounds_negated(where: str, low: int | None, high: int | None) -> None:
    straight, turned = between(where, "A", "B"), between(where, "B", "A")
    assert (straight.low, straight.high) == (low, high)
    assert (turned.low, turned.high) == (None if high is None else -high, None if low is None else -low)
    assert (texts(turned.left_key), texts(turned.right_key)) == (["B.k"], ["A.k"])


def test_implied_equalities_serve() -> None:
    """A.k = B.k and B.k = C.k let A and C be joined by key."""
    found = between("A.k = B.k AND B.k = C.k", "A", "C")
    assert (found.index, texts(found.left_key), texts(found.right_key)) == ("hash", ["A.k"], ["C.k"])


def test_a_class_already_tied_within_a_side_is_used_once() -> None:
    found = between("A.k = B.k AND B.k = C.k", "AB", "C")
    assert (texts(found.left_key), texts(found.right_key)) == (["A.k"], ["C.k"])
    assert found.verify == found.residual == ()


@pytest.mark.parametrize(("left", "right"), [("A", "B"), ("B", "A")])
def test_two_members_of_one_source_are_both_held(left: str, right: str) -> None:
    found = between("A.k = B.k AND A.j = B.k", left, right)
    assert found.index == "hash"
    keys = texts(found.left_key) + texts(found.right_key)
    assert sorted(keys) == ["A.j", "B.k"]
    assert texts(found.residual) == ["eq(A.k, B.k)"]


def test_predicates_within_a_side_or_beyond_both_are_no_matter_of_the_edge() -> None:
    where = "A.v < B.v AND C.v < D.v AND A.v < C.v AND A.v + B.v < C.v AND A.v + D.v > 0"
    assert texts(between(where, "AB", "C").residual) == ["lt(A.v, C.v)", "lt(add(A.v, B.v), C.v)"]


def test_in_words() -> None:
    assert between("A.k = B.k AND A.v < B.v", "A", "B").describe() == "hash A.k = B.k where A.v < B.v"
    assert between("A.k = C.k", "A", "B").describe() == "scan"
