"""Texts in which much stands one in the other run, or are refused when they are declared: never later."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pyarrow as pa
import pytest

import midstream as ms
from midstream.expr.coerce import literal
from midstream.expr.expression import Call, Column, Expression
from midstream.model.errors import LanguageError
from midstream.sql import parse

ROW = pa.table({"k": [1], "v": [2], "s": ["x"], "ts": pa.array([0], pa.timestamp("us"))})


def ifs(n: int) -> str:
    text = "0"
    for number in range(n):
        text = f"IF(A.v > {number}, {number}, {text})"
    return text


VALUES: dict[str, Callable[[int], str]] = {
    "sum": lambda n: "+".join(["A.v"] * n),
    "sum of sums": lambda n: "+".join([f"(A.v + {i})" for i in range(n)]),
    "difference": lambda n: "-".join(["A.v"] * n),
    "texts": lambda n: "||".join(["A.s"] * n),
    "brackets": lambda n: "(" * n + "A.v" + ")" * n,
    "minus": lambda n: "- " * n + "A.v",
    "calls": lambda n: "abs(" * n + "A.v" + ")" * n,
    "ifs": ifs,
    "cases": lambda n: "CASE WHEN A.v > 1 THEN " * n + "1" + " END" * n,
    "whens": lambda n: "CASE " + " ".join(f"WHEN A.v = {i} THEN {i}" for i in range(n)) + " END",
    "lists": lambda n: "[" * n + "A.v" + "]" * n,
    "casts": lambda n: "A.v" + "::BIGINT::VARCHAR" * n,
    "divisions": lambda n: "/".join(["A.v"] * n),
}
CONDITIONS: dict[str, Callable[[int], str]] = {
    "and": lambda n: " AND ".join(f"A.v <> {i + 9}" for i in range(n)),
    "or": lambda n: " OR ".join(f"A.v = B.v + {i}" for i in range(n)),
    "not": lambda n: "NOT " * n + "A.v = 7",
    "not in brackets": lambda n: "NOT (" * n + "A.v = 7" + ")" * n,
    "in": lambda n: f"A.v IN ({', '.join(map(str, range(n)))})",
    "sums": lambda n: "+".join(["A.v"] * n) + " = " + "+".join(["B.v"] * n),
    "equals": lambda n: "A.v = 2" + " = true" * n,
}
TEXTS = dict.fromkeys(VALUES, "SELECT {} AS x FROM A, B WHERE A.k = B.k WINDOW 1 SECOND")
JOIN = "SELECT A.k FROM A, B WHERE A.k = B.k AND ({}) WINDOW 1 SECOND"
SUM = "SELECT k, SUM({}) AS x FROM A GROUP BY k, TUMBLE(ts, '1 second')"
HAVING = "SELECT k, SUM(v) AS x FROM A GROUP BY k, TUMBLE(ts, '1 second') HAVING {} > 0"


def texts(n: int) -> list[str]:
    found = [TEXTS[name].format(value(n)) for name, value in VALUES.items()]
    found += [JOIN.format(condition(n)) for condition in CONDITIONS.values()]
    found += [SUM.format(VALUES["sum"](n).replace("A.", "")), HAVING.format("+".join(["SUM(v)"] * n))]
    found.append(" UNION ALL ".join([f"SELECT k FROM A WHERE k > {i}" for i in range(min(n, 40))]))
    found.append("SELECT * FROM (" * n + "SELECT k FROM A" + "".join(f") AS x{i}" for i in range(n)))
    return found


def engine() -> ms.Engine:
    made = ms.Engine()
    for stream in "AB":
        made.create_stream(stream, "k BIGINT, v BIGINT, s VARCHAR, ts TIMESTAMP", timestamp="ts")
    return made


@pytest.mark.parametrize("n", [20, 60, 240, 700])
def test_a_text_that_is_taken_runs(n: int) -> None:
    for text in texts(n):
        made = engine()
        try:
            made.add_query("q", text)
        except LanguageError as error:
            assert error.place and error.remedy, text[:100]
            continue
        made.push({"A": ROW, "B": ROW})
        made.explain("q", analyze=True)


@pytest.mark.parametrize("name", ["sum", "texts", "difference"])
def test_long_sums_are_taken(name: str) -> None:
    made = engine()
    made.add_query("q", TEXTS[name].format(VALUES[name](200)))
    (row,) = made.push({"A": ROW, "B": ROW})["q"].to_pylist()
    assert row["x"] == {"sum": 400, "texts": "x" * 200, "difference": -396}[name]


def test_what_is_too_deep_names_its_place() -> None:
    with pytest.raises(LanguageError, match=r"functions and operators.*line 1, column 8"):
        engine().add_query("q", TEXTS["sum"].format(VALUES["sum"](400)))
    with pytest.raises(LanguageError, match=r"60 brackets.*line 1, column 67"):
        engine().add_query("q", TEXTS["brackets"].format(VALUES["brackets"](60)))


def test_so_many_outer_joins_are_refused() -> None:
    joins = " ".join(f"LEFT JOIN B b{i} ON A.k = b{i}.k" for i in range(90))
    with pytest.raises(LanguageError, match=r"nest .* outer joins"):
        engine().add_query("q", f"SELECT A.k FROM A {joins} WINDOW 1 SECOND")


def test_outer_joins_over_outer_joins_are_parsed_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    bound, bind = [], parse._parse
    monkeypatch.setattr(parse, "_parse", lambda text, *others: (bound.append(text), bind(text, *others))[1])
    made = ms.Engine()
    for number in range(9):
        made.create_stream(f"S{number}", "k BIGINT, ts TIMESTAMP", timestamp="ts")
    joins = " ".join(f"LEFT JOIN S{n} ON S{n - 1}.k = S{n}.k" for n in range(1, 9))
    made.add_query("q", f"SELECT S0.k FROM S0 {joins} WINDOW 7 SECONDS")
    assert len(bound) <= 2 * 8, "what is bound grows with the joins, and not with their square"


def test_a_deep_expression_is_equal_hashed_and_shipped() -> None:
    def deep(n: int) -> Expression:
        found: Expression = Column(pa.int64(), "A", "v")
        for number in range(n):
            found = Call(pa.int64(), "add", (found, literal(number)))
        return found

    one, same, other = deep(1_000), deep(1_000), deep(999)
    assert one == same != other
    assert {one, same, other} == {one, other}
    again = pickle.loads(pickle.dumps(one))
    assert again == one
    assert again.text() == one.text() and again.depth == 1_000
