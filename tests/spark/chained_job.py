"""Two jobs, one reading the other's results; the first is run in a process of its own that dies as its sink commits:
`python -m tests.spark.chained_job FOLDER`.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import midstream as ms
from midstream.sinks import FileSink, StagedStep
from midstream.spark.session import local_session
from midstream.storage.local import LocalStorage
from tests.oracle.spec import SECOND, StreamSpec
from tests.spark.drive import SHORT_LIVED, Place, finish, job

SCHEMA = pa.schema([("u", pa.int64()), ("k", pa.int64()), ("ts", pa.timestamp("us"))])
STREAMS = [StreamSpec("A", SCHEMA), StreamSpec("B", SCHEMA)]
STEPS, ROWS_A_STEP, KEYS, WINDOW = 3, 30, 4, 5 * SECOND
KILLED_STEP = 1

PAIRS = """
    SELECT A.u AS a, B.u AS b, _ts AS at FROM A [RANGE 5 SECONDS], B [RANGE 5 SECONDS] WHERE A.k = B.k"""
FOURS = """
    SELECT x.a, x.b, y.a AS c, y.b AS d FROM P x [RANGE 5 SECONDS], P y [RANGE 5 SECONDS] WHERE x.a = y.b"""


class Row(NamedTuple):
    u: int
    k: int
    ts: int


def rows(stream: str) -> list[Row]:
    """All rows of a stream, one a second."""
    shift = STREAMS.index(next(spec for spec in STREAMS if spec.name == stream))
    return [Row(u, (u * 7 + shift) % KEYS, u * SECOND) for u in range(STEPS * ROWS_A_STEP)]


def feed(root: Path) -> None:
    for step in range(STEPS):
        for spec in STREAMS:
            part = rows(spec.name)[step * ROWS_A_STEP : (step + 1) * ROWS_A_STEP]
            columns = list(zip(*part, strict=True))
            arrays = [pa.array(column, pa.int64()).cast(f.type) for column, f in zip(columns, SCHEMA, strict=True)]
            Place(root).feed(spec.name, step, pa.table(arrays, schema=SCHEMA))


def expected() -> list[tuple[int, int, int, int]]:
    """What the second job answers to all rows, by definition."""
    pairs = [
        (a.u, b.u, max(a.ts, b.ts)) for a in rows("A") for b in rows("B") if a.k == b.k and abs(a.ts - b.ts) <= WINDOW
    ]
    return sorted((a, b, c, d) for a, b, at in pairs for c, d, by in pairs if a == d and abs(at - by) <= WINDOW)


def first_job(spark: SparkSession, root: Path) -> ms.Job:
    return job(spark, Place(root), STREAMS, {"pairs": PAIRS}, lanes=2)


def second_job(spark: SparkSession, root: Path, pairs: DataFrame) -> ms.Job:
    found = ms.Job(spark, root / "second", 2)
    found.stream("P", pairs, timestamp="at", lateness="1 day")
    return found.query("fours", FOURS, sink=ms.sinks.files(root / "fours"))


def die_amid_commit() -> None:
    """Die when the first file of the step has been moved and the others have not."""
    write, move = FileSink.write, LocalStorage.move

    def moved_once(storage: LocalStorage, source: str, target: str) -> None:
        move(storage, source, target)
        os.kill(os.getpid(), signal.SIGKILL)

    def written(self: FileSink, staged: StagedStep) -> None:
        if staged.step == KILLED_STEP:
            assert len(staged.files) > 1
            LocalStorage.move = moved_once  # type: ignore[method-assign]
        write(self, staged)

    FileSink.write = written  # type: ignore[method-assign]


if __name__ == "__main__":
    die_amid_commit()
    finish(first_job(local_session("chained", settings=SHORT_LIVED), Path(sys.argv[1])))
