"""How a step of a job is committed: events, then the manifest, then the sinks."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from midstream.checkpoint.writer import Writer
from midstream.model.errors import MidstreamError
from midstream.model.events import Event
from midstream.model.manifest import Manifest
from midstream.pipeline.crash_points import CrashPoint
from midstream.pipeline.outputs import Outputs

STEPS_BETWEEN_TIDYINGS = 8
"""Less than the manifests that are kept, so that no chunk is forgotten that one of them listed."""


@dataclass(frozen=True)
class Commits:
    """The steps of a job as they come to count.

    A step is committed when its manifest is published, which lists chunks and staged results that are there; the sinks
    follow, and are filled again if that was cut short.
    """

    writer: Writer
    outputs: Outputs
    crash: CrashPoint

    def note(self, manifest: Manifest, events: Iterable[Event]) -> None:
        """Write what happened in a step that is about to be committed."""
        self.outputs.folders.events.write(manifest.step, manifest.time_line, events)

    def publish(self, manifest: Manifest) -> None:
        """Commit a step, whose events are noted.

        Raises `LostCheckpointError` where another process has taken the checkpoint over.
        """
        self.crash.reach("before_manifest", manifest.step)
        self.writer.commit(manifest)
        self.crash.reach("after_manifest", manifest.step)

    def deliver(self, manifest: Manifest, *, again: bool = False) -> None:
        """Fill the sinks with the results of a step that is committed; may be called again.

        Where the step was tried `again`, what attempts have staged that broke off is removed.
        """
        self.fill(manifest)
        # The step is done: what is in the way of tidying (a damaged savepoint, say) is for the doctor to tell.
        with suppress(MidstreamError, FileNotFoundError):
            if again:
                self.outputs.clear_step(manifest)
            if manifest.step % STEPS_BETWEEN_TIDYINGS == 0:
                self.writer.check()
                self.outputs.folders.tidy(manifest)

    def fill(self, manifest: Manifest, *, keeps: bool = False) -> None:
        """Fill the sinks with the results of a committed step. Staged files stay if it `keeps` them."""
        self.crash.reach("before_sink", manifest.step)
        self.outputs.commit(manifest, keeps=keeps)
        self.crash.reach("after_sink", manifest.step)

    def may_fill_aside(self, manifest: Manifest) -> bool:
        """Return whether a thread may `fill` the sinks while the next step is done."""
        # To tidy would take the chunks of that one for what nobody lists.
        return manifest.step % STEPS_BETWEEN_TIDYINGS != 0 and self.outputs.may_commit_aside(manifest)

    def settle(self, manifest: Manifest) -> None:
        """Take back what others did of later steps, which do not count. Call it before the first step of an epoch."""
        self.writer.check()
        self.outputs.give_up_later(manifest)

    def clear(self, manifest: Manifest) -> None:
        """Remove what former epochs have staged, once the manifest's step is in the sinks."""
        self.writer.check()
        self.outputs.clear(manifest)
