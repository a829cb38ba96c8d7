"""A value that a type does not have is a dead letter and no NULL, but for a few casts."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from midstream.language.evaluate import evaluate_checked
from midstream.language.parse import parse_query
from midstream.model.schema import StreamSchema

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
    "bl": pa.array([b"a", b"1", b"true", b"", None, b"-1"]),
}
TABLE = pa.table({**COLUMNS, "ts": pa.array([0] * 6, pa.timestamp("us"))})
A = StreamSchema("A", TABLE.schema, "ts")
UNSIGNED = ("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
WHOLE = [f"CAST({column} AS {type})" for column in "tibhm" for type in ("TINYINT", "INT", "BIGINT")]
TO_UNSIGNED = [f"CAST({column} AS {type})" for column in "tibhm" for type in UNSIGNED]
ROUNDED = [f"round({column}, {places})" for column in "tib" for places in (-1, -2, -18, 0, 1)]
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
    connection = duckdb.connect()
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


@pytest.mark.parametrize("text", [*TO_UNSIGNED, *ROUNDED, *TIMES])
def test_what_is_null_still_where_a_type_does_not_have_it(text: str) -> None:
    """The texts of states have in them what may fail: a job that goes on would not find its rows."""
    assert [None if value == "failed" else value for value in found(text)] == [
        None if value == "failed" else value for value in of_duckdb(text)
    ]


def test_bytes_that_are_no_such_value_cannot_be_evaluated() -> None:
    assert "failed" in found("CAST(bl AS INT)") and found("CAST(bl AS INT)").count(None) == 1


def test_a_time_of_day_has_so_many_microseconds() -> None:
    assert found("CAST(CAST(b AS TIME) AS VARCHAR) IS NULL")[:2] == ["failed", "failed"]
