"""A job on an object store in a process of its own: `python -m tests.spark.store_job ROOT URL [PAUSE_AT]`.

It does all there is. Before it publishes the step PAUSE_AT it suspends itself.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import midstream as ms
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.model.manifest import Manifest
from midstream.spark.session import local_session
from tests.spark.drive import SHORT_LIVED
from tests.spark.test_time_lines import SQL


def the_job(spark: SparkSession, root: Path, url: str, checkpoint: str = "checkpoint", out: str = "out") -> ms.Job:
    """The job, the same whenever it is started: a step a second of input."""
    job = ms.Job(spark, f"{url}/{checkpoint}", lanes=2)
    for stream in "AB":
        reader = spark.readStream.schema("k BIGINT, ts TIMESTAMP").option("maxFilesPerTrigger", 1)
        job.stream(stream, reader.parquet(str(root / "in" / stream)), "ts")
    return job.query("q", SQL, sink=ms.sinks.files(f"{url}/{out}"))


def main(root: Path, url: str, pause_at: str = "-2") -> None:
    add = ManifestLog.add

    def paused(self: ManifestLog, manifest: Manifest) -> None:
        if manifest.step == int(pause_at):
            os.kill(os.getpid(), signal.SIGSTOP)
        add(self, manifest)

    ManifestLog.add = paused  # type: ignore[method-assign]
    job = the_job(local_session("store", settings=SHORT_LIVED), root, url)
    job.start({"availableNow": True}).await_termination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
