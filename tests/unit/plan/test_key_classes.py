"""Key classes: what a query's equalities make equal."""

from __future__ import annotations

import pytest

from midstream.plan.key_classes import key_classes
from tests.unit.building import query


def classes(where: str, sources: str = "A, B, C, D") -> list[str]:
    return [c.text() for c in key_classes(query(f"SELECT A.k FROM {sources} WHERE {where} WINDOW 5 SECONDS"))]


def test_a_chain_of_equalities_is_one_class() -> None:
    assert classes("A.k = B.k AND B.k = C.k") == ["A.k = B.k = C.k"]


@pytest.mark.parametrize(
    "where",
    [
        "A.k = B.k AND C.k = D.k AND B.k = C.k",
        "B.k = C.k AND D.k = C.k AND A.k = B.k",
        "C.k = B.k AND B.k = A.k AND A.k = D.k",
    ],
)
def test_classes_grow_together_whatever_the_order(where: str) -> None:
    assert classes(where) == ["A.k = B.k = C.k = D.k"]


def test_separate_equalities_are_separate_classes_in_order_of_text() -> None:
    assert classes("C.j = B.j AND B.k = A.k") == ["A.k = B.k", "B.j = C.j"]


def test_other_predicates_make_no_class() -> None:
    assert classes("A.k < B.k AND A.v - B.v < 1 AND (A.k = B.k OR A.j = B.j)") == []


def test_expressions_are_members_by_their_text() -> None:
    assert classes("A.k + 1 = B.k AND B.k = C.k") == ["B.k = C.k = try_cast(add(A.k, 1::int64))::int64"]


def test_two_members_of_one_source() -> None:
    (found,) = key_classes(query("SELECT A.k FROM A, B WHERE A.k = B.k AND A.j = B.k WINDOW 5 SECONDS"))
    assert [m.text() for m in found.within({"A"})] == ["A.j", "A.k"]
    assert [m.text() for m in found.doubles({"A"})] == ["A.k"]
    assert [m.text() for m in found.doubles({"A", "B"})] == ["A.k"]
    assert found.doubles({"B"}) == ()


def test_members_within_a_set_of_sources() -> None:
    (found,) = key_classes(query("SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.j WINDOW 5 SECONDS"))
    assert [m.text() for m in found.within({"A", "C"})] == ["A.k", "C.j"]
    assert found.within({"D"}) == ()
    assert found.equal(*found.within({"A", "C"})).text() == "eq(A.k, C.j)"


def test_a_self_join_has_a_member_for_each_alias() -> None:
    found = key_classes(query("SELECT x.k FROM A x, A y, A z WHERE x.k = y.k AND y.k = z.j WINDOW 5 SECONDS"))
    assert [c.text() for c in found] == ["x.k = y.k = z.j"]
