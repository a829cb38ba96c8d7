"""Signatures: equal where, and only where, states hold the same."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import pytest

from midstream.expr.expression import Expression
from midstream.logical.query import Predicate, Query
from midstream.plan.signature import canonical, relabel_query, signature
from tests.unit.building import query


def of(sql: str, *labels: str, scope: str = "0") -> str:
    """The signature of a state over these labels of the canonical query."""
    return signature(canonical(query(sql))[0], labels, scope).digest()


SOURCES = "A [RANGE 5 SECONDS], B [RANGE 7 SECONDS], C [RANGE 9 SECONDS]"
WHERE = "A.k = B.k AND B.k = C.k AND A.v < B.v AND A.j > 3"
BASE = f"SELECT A.k FROM {SOURCES} WHERE {WHERE}"


@pytest.mark.parametrize("labels", list(itertools.permutations("ABC")))
def test_the_order_of_labels_does_not_matter(labels: tuple[str, ...]) -> None:
    assert of(BASE, *labels) == of(BASE, "A", "B", "C")


@pytest.mark.parametrize(
    "same",
    [
        # Other order of sources and conditions.
        "SELECT A.k FROM C [RANGE 9 SECONDS], B [RANGE 7 SECONDS], A [RANGE 5 SECONDS] "
        "WHERE A.j > 3 AND A.v < B.v AND B.k = C.k AND A.k = B.k",
        # Other aliases.
        "SELECT x.k FROM A [RANGE 5 SECONDS] x, B [RANGE 7 SECONDS] y, C [RANGE 9 SECONDS] z "
        "WHERE x.k = y.k AND y.k = z.k AND x.v < y.v AND x.j > 3",
        # The same class by other equalities, turned round or implied.
        f"SELECT A.k FROM {SOURCES} WHERE A.k = C.k AND C.k = B.k AND A.v < B.v AND A.j > 3",
        f"SELECT A.k FROM {SOURCES} WHERE B.k = A.k AND A.k = C.k AND A.v < B.v AND A.j > 3",
        # Another select list, another spelling of a window.
        BASE.replace("5 SECONDS", "5000 MILLISECONDS").replace("SELECT A.k", "SELECT C.v, A.s AS t"),
    ],
)
def test_equal_content_has_equal_signature(same: str) -> None:
    for labels in (("A",), ("A", "B"), ("A", "B", "C"), ("A", "C")):
        assert of(same, *labels) == of(BASE, *labels), labels


@pytest.mark.parametrize(
    ("other", "differs", "agrees"),
    [
        (BASE.replace("[RANGE 5 SECONDS]", "[RANGE 6 SECONDS]"), [("A",), ("A", "B")], [("B",), ("B", "C")]),
        (BASE.replace("[RANGE 5 SECONDS]", "[ROWS 5]"), [("A",), ("A", "B")], []),
        (BASE.replace("A.j > 3", "A.j > 4"), [("A",), ("A", "B")], [("B",), ("B", "C")]),
        (BASE.replace(" AND A.j > 3", ""), [("A",), ("A", "B")], [("B", "C")]),
        (BASE.replace("A.v < B.v", "A.v <= B.v"), [("A", "B"), ("A", "B", "C")], [("A",), ("B", "C"), ("A", "C")]),
        (BASE.replace("B.k = C.k", "B.j = C.k"), [("B", "C"), ("A", "C"), ("A", "B", "C")], [("A",), ("A", "B")]),
        (BASE + " AND 1 = 0", [("A",), ("B",), ("B", "C")], []),
    ],
)
def test_other_content_has_another_signature(
    other: str, differs: list[tuple[str, ...]], agrees: list[tuple[str, ...]]
) -> None:
    for labels in differs:
        assert of(other, *labels) != of(BASE, *labels), labels
    for labels in agrees:
        assert of(other, *labels) == of(BASE, *labels), labels


def test_a_predicate_over_three_sources_holds_only_where_all_are() -> None:
    more = BASE + " AND A.k + B.k = C.j"
    assert of(more, "A", "B") == of(BASE, "A", "B")
    assert of(more, "A", "B", "C") != of(BASE, "A", "B", "C")


def test_the_scope_keeps_states_apart() -> None:
    assert of(BASE, "A", scope="0") != of(BASE, "A", scope="1")
    assert of(BASE, "A", "B", scope="0 q") != of(BASE, "A", "B", scope="0")


def test_the_sides_of_a_self_join_are_apart() -> None:
    sql = "SELECT x.k FROM A x, A y WHERE x.k = y.k AND x.v < y.v AND x.j > 0 WINDOW 5 SECONDS"
    assert canonical(query(sql))[1] == {"x": "A#x", "y": "A#y"}
    assert of(sql, "A#x") != of(sql, "A#y")


def test_a_join_side_is_no_base_state() -> None:
    assert len({of(BASE, *labels) for size in (1, 2, 3) for labels in itertools.combinations("ABC", size)}) == 7


def test_two_members_of_one_source_are_no_condition_of_its_own_state() -> None:
    """A.k = A.j follows only once B is joined."""
    two = "SELECT A.k FROM A, B WHERE A.k = B.k AND A.j = B.k WINDOW 5 SECONDS"
    one = "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS"
    assert of(two, "A") == of(one, "A")
    assert of(two, "A", "B") != of(one, "A", "B")


def test_the_text_names_all_that_counts() -> None:
    found = signature(canonical(query(BASE))[0], ("B", "A"), "7")
    assert found.scope == "7"
    assert found.inputs == ("A[range 5000000]{gt(A.j, 3::int64)}", "B[range 7000000]{}")
    assert found.predicates == ("A.k = B.k", "lt(A.v, B.v)")
    assert len(found.digest()) == 12


THERE, BACK = {"A": "x", "B": "y", "C": "z"}, {"x": "A", "y": "B", "z": "C"}


@pytest.mark.parametrize(
    "sql",
    [
        BASE,
        "SELECT A.k, A.v + B.v AS w, _ts FROM A, B WHERE A.v - B.v BETWEEN -1 AND 2 AND A.s <> B.s WINDOW 5 SECONDS",
        "SELECT A.s, COUNT(*) AS n, SUM(B.j) FROM A, B WHERE A.k = B.k GROUP BY A.s WINDOW 5 SECONDS EVERY 1 SECOND",
        "SELECT A.k FROM A [ROWS 5] EXCEPT ON (k) B [ROWS 3]",
    ],
)
def test_a_query_is_the_same_under_other_aliases_and_back(sql: str) -> None:
    found = query(sql)
    assert relabel_query(found, THERE) != found
    assert relabel_query(relabel_query(found, THERE), BACK) == found


@dataclass(frozen=True)
class Near(Predicate):
    """A kind of predicate that the room of signatures has never heard of."""

    left: Expression
    right: Expression
    distance: float


def test_a_predicate_of_another_kind_keeps_its_kind_and_every_field() -> None:
    plain: Query = query("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS")
    (equal,) = plain.predicates
    left, right = sorted(equal.expression.columns(), key=lambda column: column.alias)
    found = replace(plain, predicates=(Near(equal.expression, left, right, 0.5),))
    (near,) = relabel_query(found, THERE).predicates
    assert isinstance(near, Near)
    assert (near.aliases(), near.left.aliases(), near.right.aliases()) == ({"x", "y"}, {"x"}, {"y"})
    assert relabel_query(relabel_query(found, THERE), BACK) == found
