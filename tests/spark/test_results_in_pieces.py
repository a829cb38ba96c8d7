"""Results of a lane that are many are staged in pieces, a file each, and are those that a step would bring whole."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from midstream.pipeline.crash_points import AMID_PIECES
from midstream.runtime import piece_writer
from midstream.runtime.piece_writer import PieceSizes
from tests.spark.forked_drivers import ForkedDrivers
from tests.spark.pieces_job import PLACE, run
from tests.spark.test_blocks import fill, read

STEPS, MOST = 3, 25


@pytest.mark.timeout(300)
@pytest.mark.parametrize("held", [PieceSizes(joined=MOST), PieceSizes(evaluated=MOST)], ids=["joined", "evaluated"])
def test_pieces_are_files_in_order_of_time(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: PieceSizes
) -> None:
    fill(tmp_path, range(STEPS))
    run(spark, tmp_path, "whole")
    monkeypatch.setattr(piece_writer, "SIZES", held)
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


@pytest.mark.timeout(300)
def test_drivers_are_killed_between_two_pieces(spark: SparkSession, drivers: ForkedDrivers, tmp_path: Path) -> None:
    fill(tmp_path, range(STEPS))
    for step in (0, 2):
        drivers.kill("tests.spark.pieces_job", tmp_path, f"{AMID_PIECES}:{step}")
    done = drivers.run("tests.spark.pieces_job", tmp_path)
    assert done.returncode == 0, done
    run(spark, tmp_path, "whole")
    assert read(tmp_path, f"{PLACE}/results/q") == read(tmp_path, "whole/results/q")
    assert len(list(tmp_path.glob(f"{PLACE}/results/q/step=*/*.parquet"))) > 2 * STEPS, "no answer was in pieces"
    assert not list(tmp_path.glob(f"{PLACE}/results/q/_staging/*")), "staging was left behind"
