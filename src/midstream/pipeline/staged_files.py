"""Files for outputs that a task writes while it goes on, and a lane's answers staged in them piece by piece."""

from __future__ import annotations

from collections.abc import Mapping, Set
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol

import pyarrow as pa

from midstream.model.ids import LaneId
from midstream.model.manifest import OutputFile
from midstream.pipeline.crash_points import AMID_PIECES, CrashPoint
from midstream.pipeline.outputs import RESULTS, JobOutput
from midstream.runtime.piece_writer import PieceSizes
from midstream.sinks import Staging
from midstream.storage.transfers import threads
from midstream.storage.unsynced import Unsynced

FILES_AT_ONCE = 4
"""So many files a task writes, and makes to survive the loss of power, at the same time."""


@dataclass
class StagedFiles:
    """The files that a task writes for outputs, while it goes on; `token` keeps them apart from those of another
    attempt.

    They survive the loss of power once all are finished and `unsynced` is synced.
    """

    staging: Mapping[JobOutput, Staging]
    token: str
    unsynced: Unsynced
    _writes: list[Future[OutputFile]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self._writes)

    def put(self, output: JobOutput, stem: str, table: pa.Table) -> None:
        """Begin to write a table, unless it is empty."""
        if table.num_rows:
            self._writes.append(threads(FILES_AT_ONCE).submit(self._written, output, stem, table))

    def wait(self, left: int) -> None:
        """Wait until all but so many of the newest are written."""
        wait(self._writes[: len(self._writes) - left])

    def finish(self) -> list[OutputFile]:
        """Wait for the files, and return them; raises `SinkError` where one could not be written."""
        return [write.result() for write in self._writes]

    def _written(self, output: JobOutput, stem: str, table: pa.Table) -> OutputFile:
        staging = self.staging[output].synced_with(self.unsynced)
        file = staging.write(f"{stem}-{self.token}", table)
        return OutputFile(*output, file, table.num_rows)


AT_ONCE = 2
"""So many pieces are held: one is written while the next one is made."""


class FilesOfTask(Protocol):
    """Files that a task writes while it goes on."""

    def put(self, output: JobOutput, stem: str, table: pa.Table) -> None:
        """Begin to write a table."""

    def wait(self, left: int) -> None:
        """Wait until all but so many of the newest are written."""


@dataclass
class LanePieces:
    """A `PieceWriter` that writes each piece to a file of its own; their names are in the order of the pieces."""

    lane: LaneId
    queries: Set[str]
    staged: FilesOfTask
    crash: CrashPoint
    step: int
    sizes: PieceSizes

    def __post_init__(self) -> None:
        self._numbers = count()

    def put(self, query: str, rows: pa.Table) -> None:
        """Stage some rows, while the lane goes on."""
        number = next(self._numbers)
        self.staged.put(JobOutput(RESULTS, query), f"{self.lane}-{number:05d}", rows)
        self.staged.wait(AT_ONCE - 1)
        if number:
            self.crash.reach(AMID_PIECES, self.step)
