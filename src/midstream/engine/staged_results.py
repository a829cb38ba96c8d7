"""Results of an embedded engine's step that are staged while the step is still finding them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from midstream.job.crash_points import AMID_PIECES
from midstream.job.outputs import RESULTS, JobOutput, OutputFile, Outputs
from midstream.model.manifest import Manifest
from midstream.sinks import Staging
from midstream.step.answers import unread


@dataclass
class StagedResults:
    """Writes each piece of an answer to a file of its own, as a `PieceWriter`, named in the order of the pieces.

    `manifest` is the one that the step runs by, `before` the last step's. `reach` is told of a named point of a step,
    at which a test may have the process killed.
    """

    outputs: Outputs
    before: Manifest
    manifest: Manifest
    attempt: str
    reach: Callable[[str, int], None]
    files: list[OutputFile] = field(default_factory=list)

    @cached_property
    def _unread(self) -> Set[str]:
        return unread(self.manifest)

    @property
    def queries(self) -> Set[str]:
        """Those whose answers nobody reads within the job."""
        return self._unread

    @cached_property
    def _staging(self) -> Mapping[JobOutput, Staging]:
        return self.outputs.stage(self.before, self.outputs.named(self.manifest))

    def put(self, query: str, rows: pa.Table) -> None:
        """Stage some rows."""
        staging, unsynced = self._staging[JobOutput(RESULTS, query)], self.outputs.folders.unsynced
        if unsynced is not None:
            staging = staging.synced_with(unsynced)
        file = staging.write(f"rows-{self.attempt}-{len(self.files):05d}", rows)
        self.files.append(OutputFile(RESULTS, query, file, rows.num_rows))
        if len(self.files) > 1:
            self.reach(AMID_PIECES, self.manifest.step)
