"""Moments made of numbers are those that Python's own dates and rounding make."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.expr.evaluate import evaluate
from midstream.model.schema import StreamSchema
from midstream.sql.parse import parse_query

SCHEMA = pa.schema({"y": pa.int64(), "m": pa.int32(), "d": pa.int8(), "s": pa.float64(), "ts": pa.timestamp("us")})
A = StreamSchema("A", SCHEMA, "ts")
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def value(text: str, columns: dict[str, list[Any]]) -> pa.Array:
    expression = parse_query(f"SELECT {text} AS x FROM A", {"A": A}).outputs[0].expression
    arrays = {name: pa.array(values, SCHEMA.field(name).type) for name, values in columns.items()}
    return evaluate(expression, lambda column: arrays[column.name], len(next(iter(arrays.values()))))


def date(year: int | None, month: int | None, day: int | None) -> int | None:
    """Return the days since 1970, of years beyond those of Python by its 400 years that repeat."""
    if year is None or month is None or day is None or abs(year) > 100_000:
        return None
    whole, rest = divmod(year, 400)
    try:
        return (datetime.date(2000 + rest, month, day) - EPOCH.date()).days + (whole - 5) * 146_097
    except ValueError:
        return None


YEARS = st.none() | st.sampled_from([0, 1, 1900, 1969, 1970, 2000, 2023, 2024, 9999, 10_000, -5, 2**62])


@settings(max_examples=200, deadline=None, derandomize=True)
@given(rows=st.lists(st.tuples(YEARS, st.integers(-1, 14), st.none() | st.integers(-2, 33)), min_size=1, max_size=5))
def test_dates(rows: list[tuple[int | None, int, int | None]]) -> None:
    years, months, days = (list(column) for column in zip(*rows, strict=True))
    columns = {"y": years, "m": months, "d": days}
    for text, expected in (
        ("make_date(y, m, d)", [date(*row) for row in rows]),
        ("make_date(2024, m, d)", [date(2024, m, d) for _, m, d in rows]),
        ("make_date(y, 2, 29)", [date(y, 2, 29) for y in years]),
    ):
        assert value(text, columns).cast(pa.int32()).to_pylist() == expected


@settings(max_examples=200, deadline=None, derandomize=True)
@given(seconds=st.lists(st.none() | st.floats(-(10.0**9), 10.0**9), min_size=1, max_size=5))
def test_moments(seconds: list[float | None]) -> None:
    exact = [None if s is None else EPOCH + datetime.timedelta(microseconds=round(s * 1_000_000)) for s in seconds]
    assert value("to_timestamp(s)", {"s": seconds}).to_pylist() == exact


def test_what_is_no_moment_is_null() -> None:
    assert value("to_timestamp(s)", {"s": [float("nan"), float("inf"), 1e300, 0.0]}).to_pylist() == [None] * 3 + [EPOCH]
