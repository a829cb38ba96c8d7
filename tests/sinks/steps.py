"""Steps as a job hands them to a sink, without a job."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from midstream.model.time_line import Epoch, TimeLine
from midstream.sinks import Sink, StagedStep
from midstream.storage.local import LocalStorage

LINE = TimeLine("job", (Epoch(1, "first", 0),))


def staged(
    sink: Sink, scratch: Path, step: int, table: pa.Table, query: str = "q", line: TimeLine = LINE
) -> StagedStep:
    """A step that is staged in one file."""
    staging = sink.staging(LocalStorage(str(scratch / "scratch" / query))).of(line.stamp(step))
    return StagedStep(query, step, line, staging, (staging.write("lane-0", table),))


def commit(sink: Sink, scratch: Path, step: int, table: pa.Table, query: str = "q", line: TimeLine = LINE) -> None:
    """Stage a step, commit it and clear the staging, as a job does; a commit that fails leaves the staging."""
    given = staged(sink, scratch, step, table, query, line)
    sink.commit(given)
    given.staging.clear()
