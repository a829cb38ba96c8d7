"""Results of a lane that are many are staged in pieces, a file each, and are those that a step would bring whole."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import midstream as ms
from midstream.operators import window_join
from tests.spark.test_plain_files import fill, frame, read

PAIRS = "SELECT A.k, A.s, B.n, _ts FROM A [RANGE 20 SECONDS], B [RANGE 20 SECONDS] WHERE A.k = B.k"
STEPS, MOST = 3, 25


def run(spark: SparkSession, root: Path, place: str) -> Path:
    made = ms.Job(spark, root / place, lanes=2)
    for name in "ABC":
        made.stream(name, frame(spark, root, name, through_spark=False), timestamp="ts", lateness="1 second")
    made.query("q", PAIRS)
    made.start({"availableNow": True}).await_termination()
    return root / place / "results"


@pytest.mark.timeout(300)
def test_pieces_are_files_in_order_of_time(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, range(STEPS))
    run(spark, tmp_path, "whole")
    monkeypatch.setattr(window_join, "MOST", MOST)  # The driver does these steps by itself.
    found = run(spark, tmp_path, "pieces")
    assert read(tmp_path, "pieces/results/q") == read(tmp_path, "whole/results/q")
    for step in range(STEPS):
        by_lane: dict[str, list[list[object]]] = {}
        for file in sorted((found / "q" / f"step={step:08d}").glob("*.parquet")):
            rows = pq.read_table(file)
            assert 0 < rows.num_rows <= MOST
            by_lane.setdefault(file.name.rsplit("-", 2)[0], []).append(rows["_ts"].to_pylist())
        assert len(by_lane) == 2 and all(len(pieces) > 1 for pieces in by_lane.values())
        for pieces in by_lane.values():
            times = [time for piece in pieces for time in piece]
            assert times == sorted(times, key=str)
