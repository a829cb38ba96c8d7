"""What Spark is given to check and to hash means what the language means."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from midstream.expr.evaluate import holds
from midstream.model.schema import StreamSchema
from midstream.spark.translate import condition
from midstream.sql.parse import parse_query
from midstream.state.base_state import TIME

AMOUNTS = [Decimal("0.00"), Decimal("1.00"), Decimal("-1.50"), Decimal("7.25"), None, None, Decimal("3.00")]
DAYS = [date(1970, 1, 1), date(2024, 2, 29), None, date(1969, 12, 31), date(2000, 1, 1), None, None]
COLUMNS = {
    "i": pa.array([0, 1, -1, 7, None, 2**31 - 1, 3], pa.int32()),
    "l": pa.array([0, 1, -1, 7, None, 2**53 + 1, -(2**63)], pa.int64()),
    "f": pa.array([0.0, -0.0, 1.5, math.nan, None, math.inf, 0.1], pa.float32()),
    "d": pa.array([0.0, -0.0, 1.5, math.nan, None, -math.inf, 0.1], pa.float64()),
    "m": pa.array(AMOUNTS, pa.decimal128(8, 2)),
    "s": pa.array(["", "a", "A", "日本", None, "a%b\nc", 'it\'s \\ "x"'], pa.string()),
    "b": pa.array([True, False, True, False, None, True, False], pa.bool_()),
    "day": pa.array(DAYS),
    "at": pa.array([0, 1, None, -1, 1_709_164_800_000_000, None, 5], pa.timestamp("us", "UTC")),
    "ts": pa.array([0, 1, 2, -1, 1_709_164_800_000_000, 4, 5], pa.timestamp("us", "UTC")),
}
SCHEMA = pa.schema([(name, column.type) for name, column in COLUMNS.items()])
STREAMS = {name: StreamSchema(name, SCHEMA, "ts") for name in "AB"}

PUSHED = [
    *("i = 1", "i <> 1", "i > 0.5", "1 < i", "l >= 7", "l < 9007199254740992", "i IN (1, 7)", "i NOT IN (1, 7)"),
    *("i BETWEEN 0 AND 1", "f > 1", "f = 0", "d = 0", "d > 1e300", "d < 0.1", "d <= 0.1", "d IN (0.0, 1.5)"),
    *("m = 1", "m > -1.5", "m BETWEEN 1 AND 3", "s = 'a'", "s > 'A'", "s LIKE 'a%'", "s LIKE '%b_c'", "b = TRUE"),
    *("s IN ('日本', 'it''s \\ \"x\"')", "s IS NULL", "s IS NOT NULL", "ts IS NOT NULL", "i = 1 OR s = 'A'"),
    *("day = DATE '2024-02-29'", "day < DATE '1970-01-01'", "(i > 0 AND d > 1) OR at IS NULL"),
    *("at = TIMESTAMP '2024-02-29 00:00:00'", "ts > TIMESTAMP '1970-01-01 00:00:00'"),
]
WEAKER = [
    "i = 1 OR LOWER(s) = 'a' OR i + 1 = 2",
    "(i > 0 AND LOWER(s) = 'a') OR day IS NULL",
    "i + 1 > 2",
    "s LIKE 'a\\%'",
    "CAST(ts AS TIMESTAMP_S) = TIMESTAMP '1970-01-01 00:00:00'",
]


@pytest.fixture(scope="module")
def packed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    path = tmp_path_factory.mktemp("packed") / "rows.parquet"
    number = pa.array(range(len(COLUMNS["i"])), pa.int64())
    pq.write_table(pa.table({"n": number, TIME: COLUMNS["ts"].cast(pa.int64()), **COLUMNS}), path)
    # As in a micro-batch nothing reaches the scan, where Parquet's statistics would lose NaN.
    return spark.read.parquet(str(path)).localCheckpoint()


@pytest.mark.parametrize("text", PUSHED + WEAKER)
def test_conditions(packed: DataFrame, text: str) -> None:
    query = parse_query(f"SELECT A.i FROM A WHERE {text}", STREAMS)
    rows = len(COLUMNS["i"])
    wanted = np.ones(rows, bool)
    for _, expression in query.selections:
        wanted &= holds(expression, lambda column: COLUMNS[column.name], rows)
    slot = lambda column: TIME if column.name == "ts" else column.name  # noqa: E731
    texts = [condition(expression, slot) for _, expression in query.selections]
    known = [t for t in texts if t is not None]
    if text in PUSHED and "NOT IN" not in text:
        assert len(known) == len(texts), "not all of it is given to Spark"
    passed = packed
    for one in known:
        passed = passed.where(one)
    found = np.zeros(rows, bool)
    found[[row["n"] for row in passed.collect()]] = True
    if text in PUSHED and len(known) == len(texts):
        assert found.tolist() == wanted.tolist()
    else:
        assert (found | ~wanted).all(), "a row that the query wants is filtered away"


def test_a_time_that_is_rounded_is_left_to_the_language() -> None:
    schema = pa.schema([("nano", pa.timestamp("ns")), ("ts", pa.timestamp("us"))])
    streams = {"A": StreamSchema("A", schema, "ts")}
    text = "SELECT A.ts FROM A WHERE CAST(A.nano AS TIMESTAMP) > TIMESTAMP '1970-01-01 00:00:00'"
    ((_, selection),) = parse_query(text, streams).selections
    assert condition(selection, lambda column: column.name) is None
