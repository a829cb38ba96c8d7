"""Answers of a lane that its task stages while the lane is still finding them."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from itertools import count
from typing import Protocol

import pyarrow as pa

from midstream.job.crash_points import AMID_PIECES, CrashPoint
from midstream.job.outputs import RESULTS, JobOutput
from midstream.model.ids import LaneId

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

    def __post_init__(self) -> None:
        self._numbers = count()

    def put(self, query: str, rows: pa.Table) -> None:
        """Stage some rows, while the lane goes on."""
        number = next(self._numbers)
        self.staged.put(JobOutput(RESULTS, query), f"{self.lane}-{number:05d}", rows)
        self.staged.wait(AT_ONCE - 1)
        if number:
            self.crash.reach(AMID_PIECES, self.step)
