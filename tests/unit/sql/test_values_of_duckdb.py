"""Values that are written, read, counted and turned round as DuckDB does it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from midstream.expr.evaluate import evaluate_checked
from midstream.model.schema import StreamSchema
from midstream.sql.parse import parse_query
from tests.duck import database


def both(text: str, **columns: Any) -> tuple[list[Any], list[Any]]:
    """The values of an expression over columns, ours and DuckDB's."""
    table = pa.table(columns)
    stream = StreamSchema("A", pa.schema([*table.schema, pa.field("ts", pa.timestamp("us"))]), "ts")
    bound = parse_query(f"SELECT {text} AS x FROM A", {"A": stream}).outputs[0].expression
    found, failed = evaluate_checked(bound, lambda c: table[c.name].combine_chunks(), table.num_rows)
    assert failed is None or not failed.any()
    connection = database()
    connection.register("A", table)
    return found.to_pylist(), [row[0] for row in connection.execute(f"SELECT {text} FROM A").fetchall()]


FLOATS = [
    0.0,
    -0.0,
    1.0,
    -2.5,
    1e15,
    1e16,
    123456.75,
    1e-4,
    1e-5,
    1.5e-7,
    1e300,
    5e-324,
    float("nan"),
    float("-inf"),
    None,
]


@pytest.mark.parametrize("text", ["CAST(d AS VARCHAR)", "d || 'm'", "concat(d, '!')", "concat_ws('-', d, 'a')"])
@pytest.mark.parametrize("type", [pa.float64(), pa.float32()], ids=str)
def test_floats_are_written_as_duckdb_writes_them(text: str, type: pa.DataType) -> None:
    with np.errstate(all="ignore"):
        given = pa.array(FLOATS, pa.float64()).cast(type, safe=False)
    ours, theirs = both(text, d=given)
    assert ours == theirs
    assert both(text, d=given.slice(2, 9))[0] == theirs[2:11]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.floats(1e-6, 1e18) | st.integers(-(2**53), 2**53).map(float), min_size=1, max_size=20))
def test_any_double_is_written_as_duckdb_writes_it(numbers: list[float]) -> None:
    ours, theirs = both("CAST(d AS VARCHAR)", d=pa.array(numbers, pa.float64()))
    assert ours == theirs


def test_a_time_is_written_without_zeros_at_its_end() -> None:
    ours, theirs = both("CAST(x AS VARCHAR)", x=pa.array([0, 45_000_000_000, 45_000_500_000, 1, None], pa.time64("us")))
    assert ours == theirs


@pytest.mark.parametrize("type", ["TIMESTAMP", "TIMESTAMP_S", "DATE"])
def test_a_text_in_utc_is_a_timestamp_and_a_date(type: str) -> None:
    texts = [
        "2024-01-01T00:00:00Z",
        "2024-01-01 12:00:00.25Z",
        "2024-01-01 12:30:00+00:00",
        "2024-01-01 01:02:03",
        None,
    ]
    assert (
        both(f"CAST(CAST(s AS {type}) AS TIMESTAMP)", s=texts)[0]
        == both(f"CAST(CAST(s AS {type}) AS TIMESTAMP)", s=texts)[1]
    )
    ours, theirs = both("u = '2024-01-01T00:00:00Z'", u=pa.array([datetime(2024, 1, 1), None]))
    assert ours == theirs


def test_a_double_becomes_a_hugeint_as_it_becomes_any_integer() -> None:
    halves = [0.5, 1.5, 2.5, -2.5, 1e20, 2.4, None]
    for text in ("CAST(d AS HUGEINT)", "CAST(d AS DECIMAL(38, 0))"):
        ours, theirs = both(text, d=pa.array(halves))
        assert [None if one is None else int(one) for one in ours] == [
            None if one is None else int(one) for one in theirs
        ]


@pytest.mark.parametrize("text", ["b % 1.5::FLOAT", "f % 0.7::FLOAT", "b % f", "f % b", "d % f", "b % d"])
def test_remainders_of_floats_are_those_of_their_type(text: str) -> None:
    columns = {
        "b": pa.array([1_700_000_000_000, -7, 0, None, 16_777_217], pa.int64()),
        "f": pa.array([2.5, -0.3, 0.0, 1.0, 3e10], pa.float32()),
        "d": pa.array([1e300, 7.25, -0.1, None, 2.0]),
    }
    ours, theirs = both(text, **columns)
    assert repr(ours) == repr(theirs)


MOMENT = st.integers(-(2 * 10**9), 4 * 10**9).map(lambda s: s * 1_000_000) | st.integers(0, 5_000).map(
    lambda days: days * 86_400_000_000
)


@settings(max_examples=150, deadline=None, derandomize=True)
@example([(19_722 * 86_400_000_000, 19_782 * 86_400_000_000)])
@given(st.lists(st.tuples(MOMENT, MOMENT), min_size=1, max_size=20))
@pytest.mark.parametrize("unit", ["month", "quarter", "year", "day"])
def test_whole_months_end_where_a_shorter_month_does(unit: str, pairs: list[tuple[int, int]]) -> None:
    begin, end = (pa.array([pair[at] for pair in pairs], pa.timestamp("us")) for at in (0, 1))
    ours, theirs = both(f"date_sub('{unit}', u, v)", u=begin, v=end)
    assert ours == theirs


@pytest.mark.parametrize("text", ["str_split(s, '')", "str_split(s, 'a')", "reverse(s)", "str_split('', '')"])
def test_texts_are_divided_and_turned_round_by_characters(text: str) -> None:
    texts = ["", "ab", "e\u0301a", "日本語", None, "a\r\nb", "👍🏽a", "👨\u200d👩\u200d👧x", "\u0301a"]
    ours, theirs = both(text, s=texts)
    assert ours == theirs
