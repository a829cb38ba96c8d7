"""A value that a type does not have is a dead letter and no NULL."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from midstream.expr.evaluate import evaluate_checked
from midstream.model.errors import LanguageError
from midstream.model.schema import StreamSchema
from midstream.sql.parse import parse_query
from tests.duck import database

SIGNED = (-128, -1, 0, 1, 127, None)
COLUMNS = {
    "t": pa.array(SIGNED, pa.int8()),
    "i": pa.array([-(2**31), -1, 300, 2**31 - 1, 5, None], pa.int32()),
    "b": pa.array([-(2**63), -1, 2**40, 2**63 - 1, 5, None], pa.int64()),
    "u": pa.array([0, 1, 2**32, 2**64 - 1, 5, None], pa.uint64()),
    "h": pa.array([Decimal(10**37), Decimal(-1), Decimal(0), Decimal(1), Decimal(300), None], pa.decimal128(38, 0)),
    "m": pa.array([*map(Decimal, ("-0.50", "-1.00", "0.00", "0.10", "2.50")), None], pa.decimal128(9, 2)),
    "p": pa.array([True, False, None, True, False, None]),
    "w": pa.array([datetime(2300, 1, 1), datetime(1600, 1, 1), datetime(2020, 1, 1), None] * 2)[:6].cast(
        "timestamp[us]"
    ),
    "da": pa.array([date(2300, 1, 1), date(1, 1, 1), date(2020, 1, 1), date(9999, 12, 31), None, None]),
    "v": pa.array([255, 254, 0, 4, 5, None], pa.uint8()),
    "x": pa.array([0.5, 1.5, 2.5, -2.5, 1e20, None]),
    "f": pa.array([0.5, 1.5, 2.5, -2.5, -0.5, None], pa.float32()),
    "n": pa.array([datetime(2300 - 100 * row, 1, 1) for row in range(1, 6)] + [None], pa.timestamp("ns")),
    "s": pa.array(["0.5", "1.5", "2.5", "-2.5", "9" * 38, None]),
    "bl": pa.array([b"a", b"1", b"true", b"", None, b"-1"]),
}
TABLE = pa.table({**COLUMNS, "ts": pa.array([0] * 6, pa.timestamp("us"))})
A = StreamSchema("A", TABLE.schema, "ts")
UNSIGNED = ("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
WHOLE = [f"CAST({column} AS {type})" for column in "tibhm" for type in ("TINYINT", "INT", "BIGINT")]
TO_UNSIGNED = [f"CAST({column} AS {type})" for column in "tibhm" for type in UNSIGNED]
ROUNDED = [f"round({column}, {places})" for column in "tib" for places in (-1, -2, -18, -19, -20, -25, 0, 1)]
ROUNDED_UNSIGNED = [f"round({column}, {places})" for column in "uv" for places in (-1, -2, -20, 0)] + ["round(v)"]
HALVES = [f"CAST({column} AS {type})" for column in "xfsm" for type in ("HUGEINT", "BIGINT")]
COMPARED = [
    "w > n",
    "w = n",
    "da >= n",
    "n IS DISTINCT FROM w",
    "CASE w WHEN n THEN 1 END",
    "greatest(w, n)",
    "n IN (w)",
]
COMPARED += ["coalesce(n, w)", "nullif(n, w)", "n BETWEEN w AND w", "CASE WHEN t < 0 THEN w ELSE n END"]
BOOLEANS = ["CAST(h AS BOOLEAN)", "CAST(m AS BOOLEAN)", "CAST(p AS DECIMAL(5, 2))", "CAST(p AS HUGEINT)"]
TIMES = ["CAST(w AS TIMESTAMP_NS)", "CAST(da AS TIMESTAMP_NS)"]


def found(text: str) -> list[Any]:
    """The values of an expression, 'failed' where it cannot be evaluated."""
    bound = parse_query(f"SELECT {text} AS x FROM A", {"A": A}).outputs[0].expression
    values, failed = evaluate_checked(bound, lambda c: TABLE[c.name].combine_chunks(), TABLE.num_rows)
    values = values.cast("timestamp[us]") if pa.types.is_timestamp(values.type) else values
    return [
        "failed" if failed is not None and failed[row] else value for row, value in enumerate(values.to_pylist())
    ]  # fmt: skip


def of_duckdb(text: str) -> list[Any]:
    connection = database()
    rows = []
    for row in range(TABLE.num_rows):
        connection.register("A", TABLE.slice(row, 1))
        try:
            rows += [value for (value,) in connection.execute(f"SELECT {text} FROM A").fetchall()]
        except (duckdb.ConversionException, duckdb.OutOfRangeException):
            rows.append("failed")
    return rows


@pytest.mark.parametrize("text", [*WHOLE, *BOOLEANS])
def test_what_a_type_does_not_have_cannot_be_evaluated(text: str) -> None:
    assert found(text) == of_duckdb(text)


@pytest.mark.parametrize("text", [*TO_UNSIGNED, *ROUNDED, *ROUNDED_UNSIGNED, *HALVES, *TIMES, *COMPARED])
def test_what_is_beyond_the_edge_of_a_type_cannot_be_evaluated(text: str) -> None:
    assert [int(value) if isinstance(value, Decimal) else value for value in found(text)] == of_duckdb(text)


@pytest.mark.parametrize(
    "text",
    ["CAST(da AS TIME)", "CAST(p AS DATE)", "CAST(m AS BLOB)", "CAST(b AS BLOB)", "CAST(w AS BOOLEAN)", "w::DOUBLE"],
)
def test_what_no_value_can_be_cast_to_is_refused(text: str) -> None:
    with pytest.raises(LanguageError, match="cannot be cast to"):
        found(text)
    assert of_duckdb(text).count("failed") == 6 - of_duckdb(text).count(None) > 0
    tried = text.replace("CAST", "TRY_CAST") if "::" not in text else "TRY_CAST(w AS DOUBLE)"
    assert found(tried) == [None] * 6


def test_what_is_no_constant_of_a_type_is_refused() -> None:
    for text in ("CAST(-1 AS UTINYINT)", "CAST(CAST(-1 AS INT) AS UTINYINT)", "repeat('ab', 1099511627776)"):
        with pytest.raises(LanguageError):
            found(text)
    assert found("round(CAST(127 AS TINYINT), -1)") == ["failed"] * 6


@pytest.mark.parametrize("text", ["CAST(bl AS BOOLEAN)", "CAST(bl AS INT)"])
def test_bytes_that_are_no_such_value_cannot_be_evaluated(text: str) -> None:
    assert "failed" in found(text) and found(text).count(None) == 1


def test_a_time_of_day_has_so_many_microseconds() -> None:
    assert found("CAST(CAST(b AS TIME) AS VARCHAR) IS NULL")[:2] == ["failed", "failed"]
