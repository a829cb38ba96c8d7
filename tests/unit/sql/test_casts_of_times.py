"""A cast of a timestamp to a coarser unit rounds as DuckDB does: half of a unit away from 1970, also before it."""

from __future__ import annotations

import datetime

import duckdb
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from midstream.expr.evaluate import evaluate
from midstream.expr.expression import Call
from midstream.expr.linear import widens
from midstream.model.schema import StreamSchema
from midstream.sql.parse import parse_query
from tests.duck import database

UNITS = {"TIMESTAMP_NS": "ns", "TIMESTAMP": "us", "TIMESTAMPTZ": "us", "TIMESTAMP_MS": "ms"}
COARSER = {
    "TIMESTAMP_NS": ("TIMESTAMP", "TIMESTAMP_MS", "DATE"),
    "TIMESTAMP": ("TIMESTAMP_MS", "TIMESTAMP_S", "DATE"),
    "TIMESTAMPTZ": ("TIMESTAMP_MS", "TIMESTAMP_S"),
    "TIMESTAMP_MS": ("TIMESTAMP_S", "DATE"),
}
CASES = [(source, target) for source, targets in COARSER.items() for target in targets]


def ours(source: str, target: str, counts: list[int]) -> pa.Array:
    """The cast of times that are so many units after 1970."""
    kind = pa.timestamp(UNITS[source], "UTC" if source == "TIMESTAMPTZ" else None)
    table = pa.table({"x": pa.array(counts, kind), "ts": pa.array([0] * len(counts), pa.timestamp("us"))})
    text = f"SELECT CAST(x AS {target}) AS y FROM A"
    bound = parse_query(text, {"A": StreamSchema("A", table.schema, "ts")}).outputs[0].expression
    assert not (isinstance(bound, Call) and widens(bound)), "no window may be implied by what rounds"
    return evaluate(bound, lambda column: table[column.name].combine_chunks(), table.num_rows)


def theirs(source: str, target: str, counts: list[int]) -> list[object]:
    """What DuckDB has."""
    kind = pa.timestamp(UNITS[source], "UTC" if source == "TIMESTAMPTZ" else None)
    connection = database()
    connection.execute("SET timezone = 'UTC'")
    connection.register("t", pa.table({"x": pa.array(counts, kind)}))
    wide = target if target == "DATE" else "TIMESTAMP"
    return [row[0] for row in connection.execute(f"SELECT CAST(CAST(x AS {target}) AS {wide}) FROM t").fetchall()]


HALVES = [
    sign * (whole * size + size // 2 + more)
    for sign in (1, -1)
    for whole in (0, 1, 2, 86_399)
    for size in (1_000, 1_000_000)
    for more in (-1, 0, 1)
]


@pytest.mark.parametrize(("source", "target"), CASES)
@settings(max_examples=200, deadline=None, derandomize=True)
@example(HALVES)
@given(st.lists(st.integers(-(10**13), 10**13), min_size=1, max_size=20))
def test_a_cast_to_a_coarser_unit_rounds_as_duckdb_does(source: str, target: str, counts: list[int]) -> None:
    found = ours(source, target, counts)
    found = found if target == "DATE" else found.cast(pa.timestamp("us"))
    assert found.to_pylist() == theirs(source, target, counts)


@pytest.mark.parametrize("unit", ["S", "MS"])
@pytest.mark.parametrize(
    "text", ["1970-01-01 00:00:00.5", "1969-12-31 23:59:59.5", "1969-12-31 23:59:59.4999", "2020-02-02 01:02:03.0005"]
)
def test_a_constant_and_a_text_are_rounded_alike(unit: str, text: str) -> None:
    schema = pa.schema([("s", pa.string()), ("ts", pa.timestamp("us"))])
    expected = duckdb.sql(f"SELECT CAST(CAST('{text}' AS TIMESTAMP_{unit}) AS TIMESTAMP)").fetchall()[0][0]
    for value in (f"TIMESTAMP '{text}'", f"'{text}'", "s"):
        asked = f"SELECT CAST({value} AS TIMESTAMP_{unit}) AS y FROM A"
        bound = parse_query(asked, {"A": StreamSchema("A", schema, "ts")}).outputs[0].expression
        found = evaluate(bound, lambda column: pa.array([text]), 1)
        assert found.cast(pa.timestamp("us")).to_pylist() == [expected], value
        assert isinstance(expected, datetime.datetime)
