"""The times of results have Spark's type of the timestamps that a query reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import midstream as ms
from tests.spark.drive import finish

QUERIES = {
    "joined": "SELECT A.k, _ts FROM A, B WHERE A.k = B.k WINDOW 1 SECOND",
    "read": "SELECT joined.result_time, _ts FROM joined",
    "windows": "SELECT window_start, window_end, _ts FROM B GROUP BY TUMBLE(ts, INTERVAL '2' SECONDS)",
    "sessions": "SELECT window_start, window_end, _ts FROM B GROUP BY SESSION(ts, INTERVAL '1' SECOND)",
    "compared": "SELECT j.result_time, A.ts FROM joined j, A WHERE j.result_time = A.ts WINDOW 2 SECONDS",
}
ZONE = {"TIMESTAMP": "timestamp", "TIMESTAMP_NTZ": "timestamp_ntz"}


def stream(spark: SparkSession, folder: Path, type: str, files: Sequence[Sequence[int]]) -> DataFrame:
    """A stream of these seconds, a file a step, in a column of a type of Spark's."""
    for number, seconds in enumerate(files):
        rows = spark.createDataFrame([(7, second) for second in seconds], "k BIGINT, s BIGINT")
        rows = rows.selectExpr("k", f"CAST(timestamp_seconds(s) AS {type}) AS ts").coalesce(1)
        rows.write.parquet(str(folder / f"part={number}"))
    return spark.readStream.schema(rows.schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "part=*"))


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    [
        ("TIMESTAMP", "TIMESTAMP", "timestamp"),
        ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ", "timestamp_ntz"),
        ("TIMESTAMP", "TIMESTAMP_NTZ", "timestamp"),
    ],
)
def test_times_of_results_have_the_type_of_the_timestamps(
    spark: SparkSession, tmp_path: Path, first: str, second: str, joined: str
) -> None:
    """In files, and in what a function is given; also where a query reads another's, in windows and in sessions."""
    given: set[tuple[str, ...]] = set()

    def called(rows: DataFrame, step: int, query: str) -> None:
        given.add(tuple(kind for _, kind in rows.dtypes))

    asked = ms.Job(spark, tmp_path / "checkpoint", lanes=2)
    for name, type in (("A", first), ("B", second)):
        asked.stream(name, stream(spark, tmp_path / name, type, ([1, 2, 3], [9, 2])), timestamp="ts")
    for name, sql in QUERIES.items():
        asked.query(name, sql, sink=ms.sinks.files(tmp_path / "out" / name))
    asked.query("given", f"{QUERIES['windows']}, k", sink=called)
    finish(asked)
    own = {"joined": (joined,), "read": (joined, joined), "compared": (joined, ZONE[first])}
    for name in QUERIES:
        found = spark.read.parquet(str(tmp_path / "out" / name)).drop("step", "k")
        assert tuple(kind for _, kind in found.dtypes) == own.get(name, (ZONE[second],) * 3), name
        assert found.count(), name
    assert given == {(ZONE[second],) * 3}
    compared = spark.read.parquet(str(tmp_path / "out" / "compared"))
    assert not compared.where("CAST(result_time AS TIMESTAMP) <> CAST(ts AS TIMESTAMP)").count()
