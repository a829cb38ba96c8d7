"""What is wrong with a checkpoint, and the checkpoint under examination."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from midstream.checkpoint.folders import Folders
from midstream.model.errors import CheckpointError
from midstream.model.manifest import Manifest
from midstream.pipeline.outputs import JobOutput, Outputs
from midstream.sinks import Sink

ASIDE = "damaged"
"""The folder of the checkpoint that damaged files are moved to: nothing is removed that somebody may want."""


@dataclass(frozen=True)
class Finding:
    """Something that is wrong: what, where, and what would mend it.

    What is `harmless` only takes space, or says nothing certain. `mend` does it where nothing can be lost.
    """

    check: str
    problem: str
    place: str
    remedy: str
    harmless: bool = False
    mend: Callable[[], object] | None = field(default=None, compare=False, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values; `mendable` says whether it can be mended."""
        own = {name: value for name, value in vars(self).items() if name != "mend"}
        return {**own, "mendable": self.mend is not None}


@dataclass(frozen=True)
class Patient:
    """A checkpoint under examination; what several checks look at is read once."""

    folders: Folders
    claim: str = ""
    """The token of the examiner's own claim, if it has one."""

    @cached_property
    def newest(self) -> Manifest | None:
        """The newest manifest, if it can be read."""
        try:
            return self.folders.manifests.latest()
        except CheckpointError:
            return None

    @cached_property
    def kept(self) -> dict[str, Manifest]:
        """By what they are called the manifests that can be read: those of kept steps, and savepoints."""
        found = {}
        for step in self.folders.manifests.steps():
            try:
                found[f"step {step}"] = self.folders.manifests.read(step)
            except CheckpointError:
                continue
        for name in self.folders.savepoints.names():
            try:
                found[f"savepoint {name}"] = self.folders.savepoints.read(name)
            except CheckpointError:
                continue
        return found

    @property
    def all_read(self) -> bool:
        """Whether nothing is kept but what can be read."""
        kept = len(self.folders.manifests.steps()) + len(self.folders.savepoints.names())
        return self.newest is not None and len(self.kept) == kept

    @cached_property
    def is_held(self) -> bool:
        """Whether a process has the checkpoint that is not known to have ended."""
        try:
            claim = self.folders.manifests.epochs.newest()
        except CheckpointError:
            return True
        held = claim is not None and not claim.released and not claim.holder.is_gone
        return held and claim is not None and claim.token != self.claim

    def aside(self, name: str) -> Callable[[], object]:
        """Make a function that moves a file of the checkpoint to `ASIDE`."""
        return lambda: self.folders.storage.move(name, f"{ASIDE}/{name}")

    def sinks(self) -> Iterator[tuple[JobOutput, Sink]]:
        """Yield the outputs of the newest manifest and their sinks, except functions."""
        if self.newest is not None and self.newest.job:
            yield from Outputs(self.folders, {}).named_sinks(self.newest)
