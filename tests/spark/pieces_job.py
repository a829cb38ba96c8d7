"""A job whose tasks stage answers in pieces: `python -m tests.spark.pieces_job FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

import midstream as ms
from midstream.runtime import piece_writer
from midstream.runtime.piece_writer import PieceSizes
from midstream.spark.session import local_session
from tests.spark.drive import SHORT_LIVED
from tests.spark.test_blocks import frame

PAIRS = "SELECT A.k, A.s, B.n, _ts FROM A [RANGE 20 SECONDS], B [RANGE 20 SECONDS] WHERE A.k = B.k"
PLACE = "killed"


def run(spark: SparkSession, root: Path, place: str) -> Path:
    """Run the job to its end; the folder of its results."""
    made = ms.Job(spark, root / place, lanes=2)
    for name in "ABC":
        made.stream(name, frame(spark, root, name), timestamp="ts", lateness="1 second")
    made.query("q", PAIRS)
    made.start({"availableNow": True}).await_termination()
    return root / place / "results"


def main(root: Path) -> None:
    """Run the job with small pieces."""
    piece_writer.SIZES = PieceSizes(evaluated=25)
    run(local_session("pieces", settings=SHORT_LIVED), root, PLACE)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
