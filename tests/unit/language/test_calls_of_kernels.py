"""Arithmetic makes no Python call for a row, and products of whole numbers are exact however large they are."""

from __future__ import annotations

import cProfile
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.language.evaluate import evaluate
from midstream.language.expression import Expression
from midstream.language.parse import parse_query
from midstream.model.schema import StreamSchema

SCHEMA = pa.schema({"a": pa.int64(), "b": pa.int64(), "i": pa.int32(), "e": pa.decimal128(9, 2)})
A = StreamSchema("A", pa.schema([*SCHEMA, pa.field("ts", pa.timestamp("us"))]), "ts")
DISTANCE = "(a - b) * (a - b)"


def rows(number: int) -> pa.Table:
    values = range(1, number + 1)
    dear = pa.array([Decimal(n % 100) for n in values]).cast(SCHEMA.field("e").type)
    return pa.table([[3 * n for n in values], list(values), [n % 1_000 for n in values], dear], schema=SCHEMA)


def bound(text: str) -> Expression:
    return parse_query(f"SELECT {text} AS x FROM A", {"A": A}).outputs[0].expression


def value(text: str, table: pa.Table) -> pa.Array:
    return evaluate(bound(text), lambda column: table[column.name].combine_chunks(), table.num_rows)


def calls(text: str, table: pa.Table) -> int:
    value(text, table)
    profile = cProfile.Profile()
    profile.enable()
    value(text, table)
    profile.disable()
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize(
    "text",
    [
        DISTANCE,
        f"{DISTANCE} + (a + b) * (a + b)",
        f"{DISTANCE} * (a - b)",
        f"{DISTANCE} % 7",
        f"{DISTANCE} // 7",
        f"-{DISTANCE}",
        "i * a * b",
        "e * e * e",
        "e * (a - b)",
        "e + a",
        "abs(a - b) * e",
    ],
)
def test_arithmetic_makes_no_call_for_a_row(text: str) -> None:
    assert calls(text, rows(2_000)) < 1.5 * calls(text, rows(20))


LARGE = st.integers(-(2**63), 2**63 - 1)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(pairs=st.lists(st.tuples(LARGE, LARGE), min_size=1, max_size=4))
@pytest.mark.parametrize("power", [2, 3])
def test_products_are_exact_or_null(power: int, pairs: list[tuple[int, int]]) -> None:
    table = pa.table({"a": [a for a, _ in pairs], "b": [b for _, b in pairs]})
    found = value(" * ".join(["(a - b)"] * power), table).to_pylist()
    exact = [(a - b) ** power for a, b in pairs]
    assert found == [number if abs(number) < 10**38 else None for number in exact]
