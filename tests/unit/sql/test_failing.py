"""Arithmetic widens; what cannot be evaluated is told apart from NULL, and only where it matters."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from midstream.expr.evaluate import can_fail, evaluate_checked
from midstream.expr.expression import Expression
from midstream.model.schema import StreamSchema
from midstream.sql.parse import parse_query

WIDE = pa.decimal128(38, 0)
TABLE = pa.table(
    {
        "ts": pa.array([0, 1, 2, 3], pa.timestamp("us")),
        "s": ["7", "x", None, ""],
        "n": pa.array([1, 2, 3, None], pa.int32()),
        "small": pa.array([1, 2, -128, None], pa.int8()),
        "u": pa.array([1, 2, 2**32 - 1, None], pa.uint32()),
        "big": pa.array([2**63 - 1, -(2**63), 0, None], pa.int64()),
        "w": pa.array([Decimal(10) ** 37, Decimal(1), Decimal(-1), None], WIDE),
        "d": [0.0, 1.0, -1.0, None],
    }
)
A = StreamSchema("A", TABLE.schema, "ts")


def bound(text: str) -> Expression:
    return parse_query(f"SELECT {text} AS x FROM A", {"A": A}).outputs[0].expression


def failed(text: str) -> list[int]:
    """The rows for which an expression cannot be evaluated."""
    mask = evaluate_checked(bound(text), lambda c: TABLE[c.name].combine_chunks(), 4)[1]
    return [] if mask is None else [row for row, fails in enumerate(mask.tolist()) if fails]


@pytest.mark.parametrize(
    ("text", "type"),
    [
        ("n + 1", pa.int64()),
        ("n * n", pa.int64()),
        ("small * n", pa.int64()),
        ("-small", pa.int64()),
        ("abs(n)", pa.int64()),
        ("u * n", WIDE),
        ("u * u", WIDE),
        ("big + 1", WIDE),
        ("n * 3000000000", WIDE),
        ("-big", WIDE),
        ("big * big", WIDE),
        ("big * 2 // 3", WIDE),
        ("n // 2", pa.int32()),
        ("2 + 3", pa.int32()),
        ("2000000000 + 2000000000", pa.int64()),
        ("n / 2", pa.float64()),
    ],
)
def test_integers_widen(text: str, type: pa.DataType) -> None:
    assert bound(text).type == type


@pytest.mark.parametrize(
    "text",
    ["n + 1", "big * big", "big + n - 7", "n / 0", "sqrt(n - 5)", "ln(0e0)", "TRY_CAST(s AS INT)", "CAST(n AS BIGINT)",
     "CAST(n AS VARCHAR)", "big % 7", "big // 7", "CAST(big AS DOUBLE)", "round(d, 1)", "n > big + 1"],
)  # fmt: skip
def test_what_surely_has_a_value_is_not_watched(text: str) -> None:
    assert not can_fail(bound(text))


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("CAST(s AS INT)", [1, 3]),
        ("CAST(s AS INT) + n", [1, 3]),
        ("CAST(s AS INT) IS NULL", [1, 3]),
        ("w * 100", [0]),
        ("w * 100 + big", [0]),
        ("big // (n - 2)", [1]),
        ("big % (n - 2)", [1]),
        ("big // (n - 3)", [1, 2]),
        ("CAST(big AS INT)", [0, 1]),
        ("CAST(big * 2 AS BIGINT)", [0, 1]),
        ("n = 2 AND CAST(s AS INT) = 7", [1, 3]),
        ("n = 1 AND CAST(s AS INT) = 7", [3]),
        ("CAST(s AS INT) = 7 AND n = 1", [3]),
        ("n = 2 OR CAST(s AS INT) = 7", [3]),
        ("CASE WHEN n = 1 THEN CAST(s AS INT) ELSE 0 END", []),
        ("CASE WHEN n = 2 THEN CAST(s AS INT) END", [1]),
        ("CASE WHEN CAST(s AS INT) = 7 THEN 1 ELSE 2 END", [1, 3]),
        ("coalesce(n, CAST(s AS INT))", [3]),
        ("coalesce(CAST(s AS INT), n)", [1, 3]),
        ("coalesce(TRY_CAST(s AS INT), n)", []),
        ("nullif(CAST(s AS INT), 7)", [1, 3]),
    ],
)
def test_where_an_expression_cannot_be_evaluated(text: str, rows: list[int]) -> None:
    assert failed(text) == rows


@pytest.mark.parametrize(
    ("text", "value"),
    [("big + 1", 2**63), ("big * 2", 2**64 - 2), ("big * big", (2**63 - 1) ** 2), ("-big", 1 - 2**63)],
)
def test_wide_results_are_exact(text: str, value: Any) -> None:
    found, mask = evaluate_checked(bound(text), lambda c: TABLE[c.name].combine_chunks(), 4)
    assert found[0].as_py() == value and mask is None
