"""Columns as pandas categories and as decimals of few bits are grouped and ranked as plain ones are; what cannot be is
refused when it is declared or asked.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from midstream.embedded.engine import Engine
from midstream.model.errors import InputError, LanguageError

TEXTS, PRICES = ["b", "a", None, "b", "a"], [Decimal("1.50"), Decimal("-2.00"), None, Decimal("1.50"), Decimal("-2.00")]
SHAPES = [
    "SELECT x, COUNT(*) AS n FROM A GROUP BY x, TUMBLE(ts, INTERVAL '5' SECONDS)",
    "SELECT x, COUNT(*) AS n FROM A GROUP BY x, SESSION(ts, INTERVAL '5' SECONDS)",
    "SELECT DISTINCT x FROM A [RANGE 5 SECONDS] EVERY 5 SECONDS",
    "SELECT x, i FROM A [RANGE 5 SECONDS] QUALIFY ROW_NUMBER() OVER (PARTITION BY x ORDER BY i) <= 1 EVERY 5 SECONDS",
    "SELECT x, i FROM A [RANGE 5 SECONDS] QUALIFY ROW_NUMBER() OVER (ORDER BY x DESC) <= 2 EVERY 5 SECONDS",
    "SELECT x, ts FROM A UNION SELECT x, ts FROM A WHERE i > 2",
]


def table(values: list[Any], kind: pa.DataType, seconds: int) -> pa.Table:
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    column = pa.array(values, plain)
    times = pa.array([seconds * 1_000_000] * len(values), pa.timestamp("us"))
    encoded = column.dictionary_encode() if pa.types.is_dictionary(kind) else column
    return pa.table({"i": list(range(len(values))), "x": encoded, "ts": times})


def answers(query: str, values: list[Any], kind: pa.DataType) -> list[str]:
    engine = Engine()
    engine.create_stream("A", table(values, kind, 0).schema, timestamp="ts")
    engine.add_query("q", query)
    found = engine.push({"A": table(values, kind, 1)})["q"].to_pylist()
    return sorted(map(repr, found + engine.push({"A": table(values[:1], kind, 60)})["q"].to_pylist()))


@pytest.mark.parametrize("query", SHAPES)
def test_a_category_is_grouped_as_its_text(query: str) -> None:
    encoded = pa.dictionary(pa.int32(), pa.string())
    assert answers(query, TEXTS, encoded) == answers(query, TEXTS, pa.string()) != []


@pytest.mark.skipif(not hasattr(pa, "decimal32"), reason="this pyarrow has no decimals of 32 bits")
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("query", SHAPES)
def test_decimals_of_few_bits_are_grouped_as_others(query: str, bits: int) -> None:
    narrow = getattr(pa, f"decimal{bits}")(5, 2)
    assert answers(query, PRICES, narrow) == answers(query, PRICES, pa.decimal128(5, 2)) != []


def test_maps_are_no_partition() -> None:
    engine, kind = Engine(), pa.map_(pa.string(), pa.int64())
    engine.create_stream("A", pa.schema({"i": pa.int64(), "x": kind, "ts": pa.timestamp("us")}), timestamp="ts")
    with pytest.raises(LanguageError, match=r"cannot be grouped .at line 1, column 78"):
        engine.add_query("q", SHAPES[3].replace("SELECT x, i", "SELECT    i"))


@pytest.mark.parametrize("kind", [pa.list_(pa.string()), pa.struct({"a": pa.string()})], ids=str)
def test_lists_and_structs_are_partitions_as_their_only_value_is(kind: pa.DataType) -> None:
    values = [[text] if pa.types.is_list(kind) else {"a": text} for text in TEXTS]
    query = SHAPES[3].replace("SELECT x, i", "SELECT i")
    assert answers(query, values, kind) == answers(query, TEXTS, pa.string()) != []


def test_a_decimal_of_a_negative_scale_is_refused() -> None:
    columns = pa.schema({"x": pa.decimal128(5, -2), "ts": pa.timestamp("us")})
    with pytest.raises(InputError, match="column 'x' is a decimal with a negative scale"):
        Engine().create_stream("A", columns, timestamp="ts")


def test_a_column_without_a_name() -> None:
    engine = Engine()
    rows = pa.table({"": [1, 1], "ts": pa.array([0, 1], pa.timestamp("us"))})
    engine.create_stream("A", rows.schema, timestamp="ts")
    engine.add_query("q", "SELECT COUNT(*) AS n FROM A GROUP BY \"\", TUMBLE(ts, INTERVAL '1' SECOND)")
    later = pa.table({"": [2], "ts": pa.array([9_000_000], pa.timestamp("us"))})
    assert [engine.push({"A": given})["q"].to_pylist() for given in (rows, later)] == [[], [{"n": 2}]]


def test_a_time_of_day_is_read_from_a_text() -> None:
    engine = Engine()
    engine.create_stream("A", "x TIME, ts TIMESTAMP", timestamp="ts")
    engine.add_query("q", "SELECT CAST(x AS VARCHAR) AS x FROM A")
    given = ["12:30:00", "01:02:03.25", "7:5", "25:00:00", None]
    found = engine.push({"A": [{"x": one, "ts": "1970-01-01"} for one in given]})["q"].to_pylist()
    assert [row["x"] for row in found] == ["12:30:00", "01:02:03.25", None]
    assert engine.dead_letters["A"]["x"].to_pylist() == ["7:5", "25:00:00"]
