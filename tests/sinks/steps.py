"""Steps as a job hands them to a sink, without a job."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from midstream.spark.sinks import Sink, StagedStep


def staged(sink: Sink, scratch: Path, step: int, table: pa.Table, query: str = "q") -> StagedStep:
    """A step that is staged in one file."""
    staging = sink.stage(step, str(scratch / "scratch" / query))
    return StagedStep(query, step, staging, (staging.write("lane-0", table),))


def commit(sink: Sink, scratch: Path, step: int, table: pa.Table, query: str = "q") -> None:
    """Stage a step, commit it and clear the staging, as a job does; a commit that fails leaves the staging."""
    given = staged(sink, scratch, step, table, query)
    sink.commit(given)
    given.staging.clear()
