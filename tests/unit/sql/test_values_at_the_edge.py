"""Functions of values that are extreme or odd give what DuckDB gives; where it raises, they have no value."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from midstream.expr.evaluate import evaluate, fails
from midstream.model.errors import LanguageError
from midstream.model.schema import StreamSchema
from midstream.sql.parse import parse_query

NAN, INF, ROWS = math.nan, math.inf, 24
FAILED = "cannot be evaluated"


def column(values: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.array((values * ROWS)[:ROWS], kind)


REALS = [0.0, -0.0, 0.5, 2.5, -0.5, NAN, INF, -INF, 5e-324, 1e308, 2.0**53 + 2, 1e15 + 0.5, 1e16, 1e-4, 9e-5, 3.0, None]
TABLE = pa.table(
    {
        "s": column([None, "", "a", "\u00a0x\u2003", " \t x \n", "abc", "\u3000"], pa.string()),
        "n": column([0, 1, -1, 31, 32, 64, 2**31 - 1, -(2**31), None, -5, 55296, 57343, 1114111, 1114112], pa.int32()),
        "b": column([0, 1, -1, 63, 2**63 - 1, -(2**63), None, 5, 31], pa.int64()),
        "d": column(REALS, pa.float64()),
        "f": column([0.5, NAN, None, -0.0, 1e30, 3.0, 16777216.0, 1e-5, 1.1, 1e15, 123456789.0], pa.float32()),
        "m": column([Decimal("0.00"), Decimal("99.99"), None, Decimal("-0.05")], pa.decimal128(9, 2)),
        "w": column([Decimal(0), Decimal("0.0000000001"), None, Decimal("-" + "9" * 28)], pa.decimal128(38, 10)),
        "ts": column([0, 1, -1, 951_782_400_000_000, None, 10**15 + 123_456], pa.timestamp("us")),
        "tz": column([0, 1, None, 10**15], pa.timestamp("us", "UTC")),
        "da": column([0, -1, None, 19_782], pa.date32()),
        "row": pa.array(range(ROWS)),
    }
)
STREAM = StreamSchema("A", TABLE.schema, "ts")
JUDGE = duckdb.connect(config={"threads": 1})
JUDGE.execute("SET timezone = 'UTC'")
JUDGE.register("A", TABLE)

EXPRESSIONS = (
    *(f"CAST({name} AS VARCHAR)" for name in "dfmw"),
    "s || d", "concat(s, w)",
    "trim(s)", "ltrim(s)", "rtrim(s)", "repeat(s, 2)", "repeat(s, n % 3)", "repeat(s, 1500)", "chr(n)",
    "round(n, -1)", "round(b, -3)",
    "b >> 2", "b >> 63", "b >> 70", "n >> 31", "n >> n", "b >> b", "7 >> n",
    "power(d, 0.5)", "power(d, 2)", "power(d, -1)",
    "strftime(ts, '%f|%g|%c|%x|%X|%z|%Z|%%')", "strftime(ts, '%-d %-m %-y %-H %-I %-M %-S %-j %p')",
    "strftime(ts, '%n')", "strftime(tz, '%H %Z %z')", "strftime(da, '%d.%m.%Y %f')",
)  # fmt: skip


def duckdb_gives(expression: str) -> list[Any]:
    try:
        return [value for (value,) in JUDGE.execute(f"SELECT {expression} FROM A ORDER BY row").fetchall()]
    except duckdb.Error:
        return [one_row(expression, row) for row in range(ROWS)]


def one_row(expression: str, row: int) -> Any:
    try:
        found = JUDGE.execute(f"SELECT {expression} FROM A WHERE row = {row}").fetchone()
    except (duckdb.OutOfRangeException, duckdb.InvalidInputException):
        return FAILED
    assert found is not None
    return found[0]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_what_duckdb_gives(expression: str) -> None:
    bound = parse_query(f"SELECT {expression} AS x FROM A", {"A": STREAM}).outputs[0].expression

    def read(name: Any) -> pa.Array:
        return TABLE[name.name].combine_chunks()

    failed = np.broadcast_to(fails(bound, read, ROWS), (ROWS,)).tolist()
    found = [FAILED if no else value for no, value in zip(failed, evaluate(bound, read, ROWS).to_pylist(), strict=True)]
    expected = duckdb_gives(expression)
    assert [*map(repr, found)] == [*map(repr, expected)]


@pytest.mark.parametrize("text", ["LPAD('x', 9999999999, 'y')", "REPEAT('xy', 9999999999)", "CHR(55296)"])
def test_a_constant_that_would_take_all_memory_or_is_none_is_refused(text: str) -> None:
    with pytest.raises(LanguageError, match="has no value for"):
        parse_query(f"SELECT {text} AS x FROM A", {"A": STREAM})


def test_a_row_that_asks_for_too_long_a_text_has_none() -> None:
    rows = pa.table({"s": ["x", "ab"], "b": pa.array([10**12, 3]), "ts": pa.array([0, 0], pa.timestamp("us"))})
    stream = StreamSchema("A", rows.schema, "ts")
    for call, expected in (("REPEAT(s, b)", "ababab"), ("LPAD(s, b, 'y')", "yab"), ("RPAD(s, b, 'y')", "aby")):
        bound = parse_query(f"SELECT {call} AS x FROM A", {"A": stream}).outputs[0].expression
        assert evaluate(bound, lambda c: rows[c.name].combine_chunks(), 2).to_pylist() == [None, expected]
        assert fails(bound, lambda c: rows[c.name].combine_chunks(), 2).tolist() == [True, False]
