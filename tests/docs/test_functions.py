"""Every function of docs/functions.md gives what DuckDB gives, over columns with NULLs and odd values."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from midstream.expr.evaluate import evaluate
from midstream.expr.functions import MORE
from midstream.model.schema import StreamSchema
from midstream.sql.parse import parse_query
from tests.oracle.values import agree

PAGE = Path(__file__).parents[2] / "docs" / "functions.md"
NAN, INF = float("nan"), float("inf")
TABLE = pa.table(
    {
        "s": ["abc", "ab", "", None, "aab,b,c", " A b ", "日本語ab", "b%a_"],
        "t": ["x", None, "", "y", "ab", "日", "%", "b"],
        "n": pa.array([0, 3, -7, None, 6, 2, 5, 1], pa.int32()),
        "b": pa.array([0, 1_577_836_800_123, -1, None, 5, 10**12, 7, 2**40], pa.int64()),
        "d": pa.array([0.5, -0.25, NAN, None, INF, -2.75, 0.0, 8.0], pa.float64()),
        "m": pa.array([*map(Decimal, ("1.25", "-2.50", "0.00", "99999.99", "-0.01", "5.00", "7.77")), None]).cast(
            pa.decimal128(9, 2)
        ),
        "ts": pa.array([0, 1, None, 10**15, -5, 1_582_934_399_999_999, -86_400_000_000, 10**9], pa.timestamp("us")),
        "u": pa.array([1, 10**15, 5, None, 2 * 10**15, 1_582_934_400_000_000, 0, -1], pa.timestamp("us")),
        "da": pa.array([0, 18_320, None, 11574, -1, 18_321, 1, -400], pa.date32()),
        "j": [
            '{"a": {"b": ["x", 1.5]}, "l": [1, null]}',
            "{}",
            '{"a": 7, "l": []}',
            None,
            '{"a": "é\\n", "l": [{"k":1}]}',
            '{"a": null, "l": [true]}',
            '{"a": {"b": null}, "l": 3}',
            "[1]",
        ],
        "info": pa.array(
            [{"ip": "x", "geo": {"lat": 1.5}}, None, {"ip": None, "geo": None}, {"ip": "", "geo": {"lat": None}}] * 2,
            pa.struct({"ip": pa.string(), "geo": pa.struct({"lat": pa.float64()})}),
        ),
        "tags": pa.array([["p", "q"], [], None, [None], ["r"], ["s", "t", "u"], [""], None], pa.list_(pa.string())),
        "attrs": pa.array(
            [[("k", 5)], [], None, [("j", 1), ("k", None)], [("j", 2)], [("j", 1), ("k", 2)], [("", 3)], None],
            pa.map_(pa.string(), pa.int64()),
        ),
    }
)
STREAM = StreamSchema("A", TABLE.schema, "ts")


def cells() -> list[list[str]]:
    """The cells of the page's tables, row by row; `\\|` is a bar."""
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    split = [re.split(r"(?<!\\)\|", row.strip().strip("|")) for row in rows]
    return [[cell.replace("\\|", "|").strip() for cell in row] for row in split]


EXAMPLES = [
    (text, text) for first, second in cells() if not second.startswith("`") for text in re.findall("`([^`]+)`", first)
]
EXAMPLES += [(first.strip("`"), second.strip("`")) for first, second in cells() if second.startswith("`")]


@pytest.fixture(scope="module")
def oracle() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.register("A", TABLE)
    return connection


@pytest.mark.parametrize(("ours", "theirs"), EXAMPLES, ids=[ours for ours, _ in EXAMPLES])
def test_an_example_gives_what_duckdb_gives(oracle: duckdb.DuckDBPyConnection, ours: str, theirs: str) -> None:
    expected = [row[0] for row in oracle.execute(f"SELECT TRY({theirs}) FROM A").fetchall()]
    bound = parse_query(f"SELECT {ours} AS x FROM A", {"A": STREAM}).outputs[0].expression
    found = evaluate(bound, lambda c: TABLE[c.name].combine_chunks(), TABLE.num_rows)
    found.validate(full=True)
    rows = zip(TABLE.to_pylist(), found.to_pylist(), expected, strict=True)
    wrong = [(given, mine, right) for given, mine, right in rows if not agree(mine, right)]
    assert not wrong, wrong


def test_every_function_has_an_example() -> None:
    named = {part.function for ours, _ in EXAMPLES for part in _bound(ours).walk() if hasattr(part, "function")}
    assert not MORE.keys() - named - {"to_timestamp"}, "write an example into docs/functions.md"


def test_parts_of_a_slice_of_nested_values() -> None:
    cut = TABLE.slice(3, 4)
    for text in ("info.geo.lat", "tags[2]", "tags[-1]", "attrs['k']"):
        whole = evaluate(_bound(text), lambda c: TABLE[c.name].combine_chunks(), 8)
        part = evaluate(_bound(text), lambda c: cut[c.name].chunk(0), 4)
        assert part.to_pylist() == whole.to_pylist()[3:7], text


def _bound(text: str) -> Any:
    return parse_query(f"SELECT {text} AS x FROM A", {"A": STREAM}).outputs[0].expression


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("regexp_matches(s, '(')", "not a regular expression"),
        ("regexp_matches(s, t)", "must be a constant"),
        ("regexp_extract(s, 'a', 3)", "has no group 3"),
        ("date_trunc('fortnight', ts)", "unknown unit 'fortnight'"),
        ("date_diff('week', ts, u)", "unknown unit 'week'"),
        ("left(n, 2)", "take a INTEGER"),
        ("info.ipp", "unknown field 'ipp'"),
        ("tags[0]", "use 1 for the first item"),
        ("tags[s]", "must be a whole number, not a value of type string"),
        ("n[1]", "cannot have a subscript"),
        ("j->>s", "a JSON path must be a constant"),
        ("from_csv(s, 'a INT')", "unknown function 'FROM_CSV' .at line 1, column 8"),
        ("timestampdiff(FORTNIGHT, ts, u)", "unknown unit 'fortnight'"),
        ("list_contains(s, 'a')", "is not a list"),
        ("1 // 0", "'//' has no value for 1, 0"),
        ("make_date(2020, 2, 30)", "'MAKE_DATE' has no value for 2020, 2, 30"),
        ("CAST(300 AS TINYINT)", "300 is not a valid TINYINT"),
        ("foo(s)", "unknown function 'FOO'"),
    ],
)
def test_what_cannot_be_said_is_told(text: str, message: str) -> None:
    with pytest.raises(Exception, match=message):
        _bound(text)
