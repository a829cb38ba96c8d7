"""Result files in Parquet: how their columns are encoded, and that Spark and DuckDB read every kind that is."""

from __future__ import annotations

import datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from midstream.sinks.formats import written

DAY = datetime.date(1969, 12, 31)
TIME = datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999)
NUMBERS = {"tiny": pa.int8(), "small": pa.int16(), "plain": pa.int32(), "big": pa.int64()}


def table() -> pa.Table:
    columns = {
        name: pa.array([-(2 ** (kind.bit_width - 1)), None, 2 ** (kind.bit_width - 1) - 1, 0], kind)
        for name, kind in NUMBERS.items()
    }
    columns["day"] = pa.array([DAY, None, datetime.date(2026, 11, 25), DAY])
    columns["at"] = pa.array([TIME, None, datetime.datetime(2026, 11, 25), TIME], pa.timestamp("us"))
    columns["zoned"] = columns["at"].cast(pa.timestamp("us", "UTC"))
    columns["real"] = pa.array([0.5, None, float("inf"), -0.0])
    columns["text"] = pa.array(["x", None, "", "x"])
    return pa.table(columns)


def file_of(tmp_path: Path) -> Path:
    path = tmp_path / "results.parquet"
    path.write_bytes(written(table(), "parquet"))
    return path


def test_whole_numbers_and_times_are_delta_encoded(tmp_path: Path) -> None:
    group = pq.read_metadata(file_of(tmp_path)).row_group(0)
    columns = [group.column(at) for at in range(group.num_columns)]
    packed = {column.path_in_schema for column in columns if "DELTA_BINARY_PACKED" in column.encodings}
    assert packed == {*NUMBERS, "day", "at", "zoned"}


def test_spark_and_duckdb_read_what_was_written(spark: SparkSession, tmp_path: Path) -> None:
    path = file_of(tmp_path)
    assert duckdb.sql(f"FROM '{path}'").to_arrow_table().to_pylist() == pq.read_table(path).to_pylist()
    assert pq.read_table(path) == table()
    read = spark.read.parquet(str(path)).toArrow()
    for name in table().column_names:
        assert read.column(name).to_pylist() == table().column(name).to_pylist(), name
