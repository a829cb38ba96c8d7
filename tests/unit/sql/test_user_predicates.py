"""A user's predicate: how it is named and typed, what it is asked, and what is said where it goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import midstream as ms
from midstream.expr import user_predicates
from midstream.expr.evaluate import all_hold, holds
from midstream.expr.expression import Expression, infix
from midstream.expr.functions import asks_user
from midstream.logical.query import EquiPredicate, Predicate
from midstream.model.errors import MidstreamError
from midstream.operators.join_condition import join_condition
from midstream.plan.signature import signature
from midstream.sql.parse import parse_query
from midstream.sql.parts import Statement
from tests.unit.sql.schemas import STREAMS, parsed

FROM = "SELECT A.k FROM A [ROWS 9], B [ROWS 9], C [ROWS 9] WHERE"


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Predicates that no other test sees."""
    monkeypatch.setattr(user_predicates, "_KNOWN", {})
    ms.predicate("alike", lambda a, b: pc.equal(a, b), "VARCHAR", "VARCHAR")
    ms.predicate("near", lambda a, b, most: pc.less(pc.abs(pc.subtract(a, b)), most), *["DOUBLE"] * 3)
    ms.predicate("Odd", lambda a: pc.equal(pc.bit_wise_and(a, 1), 1), pa.int64())


def where(condition: str) -> Expression:
    """A condition on one stream."""
    ((_, found),) = parsed(f"SELECT k FROM A WHERE {condition}").selections
    return found


def told(condition: str, **columns: list[Any]) -> list[bool]:
    """Where a condition on one stream is true."""
    rows = pa.record_batch({name: pa.array(values) for name, values in columns.items()})
    return holds(where(condition), lambda c: rows.column(c.name), rows.num_rows).tolist()


def test_it_is_a_filter_a_join_condition_or_a_residual_by_the_streams_that_it_reads() -> None:
    query = parsed(f"{FROM} odd(A.k) AND near(A.v, B.v, 2) AND A.s = B.s AND near(A.v, B.v + C.v, 1.5)")
    assert [(alias, infix(e)) for alias, e in query.selections] == [("A", "odd(A.k)")]
    assert [type(p) for p in query.predicates] == [Predicate, EquiPredicate, Predicate]
    assert [sorted(p.aliases()) for p in query.predicates] == [["A", "B"], ["A", "B"], ["A", "B", "C"]]


def test_no_key_and_no_band_is_made_of_it() -> None:
    query = parsed(f"{FROM} odd(A.k) = odd(B.k) AND CASE WHEN odd(A.k) THEN 1 ELSE 2 END <= B.k AND B.k = C.k")
    assert [type(p) for p in query.predicates] == [Predicate, Predicate, EquiPredicate]


def test_its_name_is_part_of_what_a_state_holds() -> None:
    query = parsed(f"{FROM} near(A.v, B.v, 2) AND alike(B.s, C.s)")
    assert "near(A.v, B.v, 2::int32)" in signature(query, {"A", "B"}, "").text()
    assert "alike" not in signature(query, {"A", "B"}, "").text()


def test_it_is_asked_last_about_what_the_others_leave() -> None:
    query = parsed(f"{FROM} alike(A.s, B.s) AND A.v + B.v > A.k AND A.i <> B.i")
    assert [asks_user(e) for e in join_condition(query, frozenset("A"), frozenset("B")).residual] == [
        False,
        False,
        True,
    ]
    asked: list[int] = []
    ms.predicate("odd", lambda a: asked.append(len(a)) or pc.equal(a, a), "BIGINT")  # type: ignore[func-returns-value]
    rows = pa.record_batch({"k": pa.array([1, 2, 3, 4, None]), "v": pa.array([0.0, 1.0, 2.0, 3.0, 4.0])})
    assert all_hold([where("odd(k)"), where("v > 1")], rows).tolist() == [False, False, True, True, False]
    assert asked == [3]


def test_null_is_not_true_nor_is_its_negation() -> None:
    assert told("odd(k)", k=[1, 2, None]) == [True, False, False]
    assert told("NOT odd(k)", k=[1, 2, None]) == [False, True, False]
    assert told("odd(k) OR k IS NULL", k=[1, 2, None]) == [True, False, True]


def test_case_does_not_matter_and_literals_stand_for_every_row() -> None:
    assert told("NEAR(v, k, 1.5)", v=[1.0, 4.0], k=[2, 2]) == [True, False]
    assert told("near(v, NULL, 1)", v=[1.0, 4.0]) == [False, False]
    assert told("near(v, 1, 1)", v=[]) == []


GIVEN: list[Any] = [
    pa.array([True, None, False]),
    pa.chunked_array([[True], [None, False]]),
    np.array([True, False, False]),
    pa.nulls(3),
]


@pytest.mark.parametrize("given", GIVEN)
def test_arrow_arrays_and_numpy_arrays_of_booleans_are_taken(given: Any) -> None:
    ms.predicate("odd", lambda a: given, "BIGINT")
    assert told("odd(k)", k=[1, 2, 3])[1:] == [False, False]


def fails(row: pa.Array) -> pa.Array:
    """Raises at 6."""
    if 6 in row.to_pylist():
        raise ValueError("no sixes")
    return pc.equal(row, row)


WRONG: list[tuple[Callable[..., Any], str]] = [
    (fails, r"raised ValueError\('no sixes'\) for odd\(6\)"),
    (lambda a: [True] * len(a), "returned a list instead of an array of booleans"),
    (lambda a: np.ones(len(a)), "returned a float64 ndarray instead"),
    (lambda a: a, "returned values of type int64 instead of booleans"),
    (lambda a: pa.array([True]), "returned 1 values for 8 rows"),
    (lambda a: None, "returned a NoneType instead"),
    (
        lambda a: 1 // (len(a) < 4),
        r"raised ZeroDivisionError\(.*\) for 4 rows together, but not for either half of them",
    ),
]


@pytest.mark.parametrize(("function", "message"), WRONG)
def test_what_goes_wrong_is_told_with_the_row(function: Callable[..., Any], message: str) -> None:
    ms.predicate("odd", function, "BIGINT")
    with pytest.raises(ms.QueryError, match=message) as found:
        told("odd(k)", k=[1, 2, 3, 4, 5, 6, 7, 6])
    assert found.value.place == "predicate odd(BIGINT)"
    assert "register it again and repeat the step, which kept nothing; or drop the query" in found.value.remedy


def test_long_values_are_cut_in_messages() -> None:
    ms.predicate("alike", lambda a, b: 1 // 0, "VARCHAR", "VARCHAR")
    with pytest.raises(ms.QueryError, match=r"for alike\('x{59}\.\.\., NULL\)"):
        told("alike(s, NULL)", s=["x" * 1000])


REFUSED = [
    ("near(v, v)", "2 arguments instead of 3", "near(DOUBLE, DOUBLE, DOUBLE)"),
    ("near(v, s, 1)", "a VARCHAR where it takes a DOUBLE", "CAST"),
    ("near(v, 'x', 1)", "'x' is not a valid DOUBLE", "literal"),
    ("odd(v)", "a DOUBLE where it takes a BIGINT", "CAST"),
    ("odd(5)", "no argument of the predicate reads a column", "a column of a stream"),
    ("odd(*)", "is not allowed here", "write comparisons"),
    ("od(k)", "unknown function 'OD'", "midstream.predicate('od', function, types of its arguments)"),
    ("os.system(s)", "is not allowed here", "write comparisons"),
    ("__import__(s)", "unknown function '__IMPORT__'", "midstream.predicate"),
    ("sub(k, k)", "unknown function 'SUB'", "midstream.predicate"),
]


@pytest.mark.parametrize(("condition", "message", "remedy"), REFUSED)
def test_wrong_uses_name_their_place_and_the_remedy(condition: str, message: str, remedy: str) -> None:
    with pytest.raises(ms.LanguageError) as found:
        parsed(f"SELECT k FROM A WHERE {condition}")
    assert message in found.value.message
    assert remedy in found.value.remedy
    assert found.value.place.startswith("line 1, column 2")


UNNAMED: list[tuple[tuple[Any, ...], str]] = [
    (("levenshtein", len, "INT"), "cannot be the name of a predicate"),
    (("sub", len, "INT"), "cannot be the name of a predicate"),
    (("in", len, "INT"), "cannot be the name of a predicate"),
    (("window", len, "INT"), "cannot be the name of a predicate"),
    (("a b", len, "INT"), "cannot be the name of a predicate"),
    (("x); DROP", len, "INT"), "cannot be the name of a predicate"),
    (("fine", 7, "INT"), "7 is not a function"),
    (("fine", len), "has no argument"),
    (("fine", len, "FOO"), "'FOO' is not a type"),
    (("fine", len, "INT, b INT"), "'INT, b INT' is not a type"),
    (("near", len, "DOUBLE"), r"already registered as near\(DOUBLE, DOUBLE, DOUBLE\)"),
]


@pytest.mark.parametrize(("given", "message"), UNNAMED)
def test_what_cannot_be_registered_says_why(given: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ms.QueryError, match=message) as found:
        ms.predicate(*given)
    assert found.value.remedy


class Entry:
    """An entry point as an installed package declares it."""

    value = "shop:similar"

    def __init__(self, found: Any) -> None:
        self.found = found

    def load(self) -> Any:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (ImportError("no shop"), "cannot be loaded: ImportError"),
        (len, "is not a predicate called 'similar'"),
        (user_predicates.UserPredicate("other", len, (pa.int64(),)), "is not a predicate called 'similar'"),
    ],
)
def test_an_entry_point_that_is_no_predicate_says_so(monkeypatch: pytest.MonkeyPatch, found: Any, message: str) -> None:
    monkeypatch.setattr(user_predicates, "entry_points", lambda group, name: [Entry(found)])
    with pytest.raises(ms.QueryError, match=message):
        parsed("SELECT k FROM A WHERE similar(k)")


def test_an_installed_package_offers_predicates_by_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    offered = user_predicates.UserPredicate("similar", lambda a: pc.equal(a, 2), (pa.int64(),))
    asked: list[tuple[str, str]] = []

    def points(group: str, name: str) -> list[Entry]:
        asked.append((group, name))
        return [Entry(offered)]

    monkeypatch.setattr(user_predicates, "entry_points", points)
    assert told("similar(k)", k=[1, 2]) == [False, True]
    assert asked == [("midstream.predicates", "similar")]


def test_a_statement_that_asks_a_predicate_is_bound_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    statement = Statement.of("SELECT A.k FROM A, B WHERE A.k = B.k AND odd(A.k) WINDOW 5 SECONDS")
    assert parse_query(statement, STREAMS) == parse_query(statement, STREAMS)
    monkeypatch.setattr(user_predicates, "_KNOWN", {})
    with pytest.raises(MidstreamError, match="odd"):
        parse_query(statement, STREAMS)
