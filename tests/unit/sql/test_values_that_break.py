"""No value of a row, and no constant of a query, makes an expression raise: it has a value, or is a dead letter."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from midstream.expr.evaluate import evaluate_checked
from midstream.expr.expression import Expression
from midstream.expr.kernels.text import LONGEST
from midstream.model.errors import LanguageError
from midstream.model.schema import StreamSchema
from midstream.sql.parse import parse_query
from tests.duck import database

ENDS = [-(2**63) + 1, 2**63 - 1, -(2**63), 0, None, -1]
TABLE = pa.table(
    {
        "s": ["a", "ab", None, '{"a":"\\ud800"}', '{"a":"\\ud83d\\ude00"}', "x"],
        "t": [None, "b", None, "", "", None],
        "n": pa.array([2**40, -5, 3, None, 2**63 - 1, 0xD800], pa.int64()),
        "u": pa.array([2**64 - 1, 0, None, 1, 2, 3], pa.uint64()),
        "d": [1.25, -0.5, None, 1e300, float("nan"), 17.0],
        "m": pa.array(ENDS, pa.timestamp("us")),
        "tags": pa.array([["a"], [], None, [None], ["b", "c"], ["d"]], pa.list_(pa.string())),
        "attrs": pa.array([[("a", 1)], [], None, [], [], []], pa.map_(pa.string(), pa.int64())),
        "pairs": pa.array([[1, 2], None, [3, None], [2, 2], None, [1, 1]], pa.list_(pa.int64(), 2)),
        "lists": pa.array([[[1]], [], None, [], [], []], pa.list_(pa.list_(pa.int64()))),
        "rates": pa.array([[(1.5, "a")], [], None, [], [], [(1.5, None)]], pa.map_(pa.float64(), pa.string())),
        "ts": pa.array([0] * 6, pa.timestamp("us")),
    }
)
A = StreamSchema("A", TABLE.schema, "ts")
FAILED = "failed"


def bound(text: str) -> Expression:
    return parse_query(f"SELECT {text} AS x FROM A", {"A": A}).outputs[0].expression


def found(text: str, table: pa.Table = TABLE) -> list[Any]:
    """The values of an expression, `FAILED` where it cannot be evaluated."""
    values, failed = evaluate_checked(bound(text), lambda c: table[c.name].combine_chunks(), table.num_rows)
    values.validate(full=True)
    return [
        FAILED if failed is not None and failed[row] else value for row, value in enumerate(values.to_pylist())
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s->>'a'", [None, None, None, None, "😀", None]),
        ("CAST(s->'a' AS VARCHAR)", [None, None, None, None, '"😀"', None]),
        ("length(repeat(s, n))", [FAILED, 0, None, None, FAILED, 55296]),
        ("length(repeat(s, 2000000))", [FAILED, FAILED, None, FAILED, FAILED, FAILED]),
        ("length(lpad(s, n, 'xy'))", [FAILED, 0, None, None, FAILED, 55296]),
        ("length(rpad(s, n, 'xy'))", [FAILED, 0, None, None, FAILED, 55296]),
        ("chr(n)", [FAILED, FAILED, "\x03", None, FAILED, FAILED]),
        ("substring(s, 1, 9223372036854775807)", TABLE["s"].to_pylist()),
        ("substring(s, 9223372036854775807, 9)", ["", "", None, "", "", ""]),
        ("concat_ws('-', t, NULL)", ["", "b", "", "", "", ""]),
        ("concat_ws(t, s, NULL)", [None, "ab", None, '{"a":"\\ud800"}', '{"a":"\\ud83d\\ude00"}', None]),
        ("str_split('a,b,c', ',')[n]", [None, None, "c", None, None, None]),
        ("array_length(str_split('a,b', ','))", [2] * 6),
        ("concat(str_split('a,b', ',')[2], '!')", ["b!"] * 6),
        ("length(dayname(m))", [None, None, None, 8, None, 9]),
        ("attrs[NULL]", [None] * 6),
        ("rates[1.5]", ["a", *[None] * 5]),
        ("list_contains(pairs, 2)", [True, None, False, True, None, False]),
        ("round(NULL, -1)", [None] * 6),
        ("NULL & NULL", [None] * 6),
        ("trunc(d, -1)", [0.0, -0.0, None, 1e300, float("nan"), 10.0]),
        ("regexp_extract(s, '[](a](.)', 1)", ["", "b", None, '"', '"', ""]),
        ("regexp_extract(s, '[[:alpha:](](.)', 1)", ["", "b", None, '"', '"', ""]),
    ],
)
def test_a_value_of_a_row_is_no_fault(text: str, expected: list[Any]) -> None:
    assert repr(found(text)) == repr(expected)


def test_a_text_that_a_row_makes_too_long_cannot_be_evaluated() -> None:
    table = pa.table({"s": ["a" * 2_000, "a"], "t": ["b" * 2_000, "b" * LONGEST]})
    assert [value == FAILED for value in found("replace(s, 'a', t)", table)] == [True, False]
    parts = pa.table({"s": ["a" * 2_000, "a"], "t": ["a", "b"]})
    assert [value == FAILED for value in found(f"replace(s, t, '{'b' * 2_000}')", parts)] == [True, False]
    assert found("length(replace(s, 'a', 'bb'))", table) == [4_000, 2]
    assert found("length(repeat(s, 1000))", table) == [2_000_000, 1_000]


CODES = ["%a%A%b%B%c", "%d%-d%f%g%G", "%H%-H%I%-I%j%m%-m", "%M%-M%p%S%-S%u", "%U%V%w%W%x%X", "%y%-y%Y%z%Z"]
FAR = ["290000-03-15 01:02:03", "0044-03-15 (BC) 10:00:00", "280000-12-31 (BC) 23:59:59", "infinity", "-infinity"]
NEAR = ["2024-02-29 12:34:56.789123", "0005-01-02 00:00:00", "2021-01-03 00:05:06", "9999-12-31 23:59:59.999999"]


@pytest.mark.parametrize("text", ["dayname(m)", "monthname(m)", *(f"strftime(m, 'é{codes}|%%')" for codes in CODES)])
@pytest.mark.parametrize("moments", [NEAR, NEAR + FAR], ids=["near", "far"])
def test_moments_are_written_as_duckdb_writes_them(text: str, moments: list[str]) -> None:
    connection = database()
    read = "CREATE TEMP TABLE A AS SELECT unnest(?)::TIMESTAMP AS m UNION ALL SELECT NULL"
    connection.execute(read, [moments])
    expected = [row[0] for row in connection.execute(f"SELECT {text} FROM A").fetchall()]
    counts = [row[0] for row in connection.execute("SELECT epoch_us(m) FROM A").fetchall()]
    ends = {"infinity": 2**63 - 1, "-infinity": -(2**63) + 1}
    counts = [ends.get(given, count) for given, count in zip([*moments, ""], counts, strict=True)]
    assert found(text, pa.table({"m": pa.array(counts, pa.timestamp("us"))})) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("regexp_replace(s, '(a)', '\\9')", "cannot replace a match"),
        ("regexp_replace(s, '(a)', '\\')", "cannot replace a match"),
        ("regexp_extract(s, '(a)', -1)", "has no group -1"),
        ("regexp_extract(s, '(a)', NULL)", "the number of the group must be a constant"),
        ("regexp_extract(s, '\\Q(\\E', 1)", "has no group 1"),
        ("trunc(d, -400)", "TRUNC needs a constant number of decimal places"),
        ("trunc(d, n)", "TRUNC needs a constant number of decimal places"),
        ("repeat('ab', 1099511627776)", "'REPEAT' has no value for ab, 1099511627776"),
        ("lpad('a', 1099511627776, 'x')", "'LPAD' has no value"),
        ("chr(55296)", "'CHR' has no value for 55296"),
        ("u & n", "cannot combine a UBIGINT with a signed integer"),
        ("list_contains(tags, pairs)", "search for a number, string or time"),
        ("list_contains(lists, 1)", "use a list of numbers, strings or times"),
        ("attrs[tags]", "use a number, string or time as the key"),
        ("tags || s", "a value of type list"),
        ("concat_ws('-', tags)", "a value of type list"),
        ("get_json_object(s, '$..a')", "unknown function 'GET_JSON_OBJECT'"),
        ("9" * 400, "is outside the range of DOUBLE"),
        ("9" * 5_000, "is outside the range of DOUBLE"),
    ],
)
def test_what_has_no_value_is_refused(text: str, message: str) -> None:
    with pytest.raises(LanguageError, match=message):
        bound(text)


@pytest.mark.parametrize("text", ["DATE '9999-12-31' + 1", "TIMESTAMP '9999-12-31' + INTERVAL 1 DAY"])
def test_a_moment_of_which_python_has_no_value_is_a_constant_all_the_same(text: str) -> None:
    connection = database()
    assert found(f"date_diff('day', TIMESTAMP '2000-01-01', {text})", TABLE.slice(0, 1)) == [
        connection.execute(f"SELECT date_diff('day', TIMESTAMP '2000-01-01', {text})").fetchall()[0][0]
    ]
