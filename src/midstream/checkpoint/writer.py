"""The one writer of a checkpoint: it begins an epoch, and its steps commit only as long as that is the newest."""

from __future__ import annotations

from dataclasses import dataclass

from midstream.checkpoint.epochs import EpochClaim
from midstream.checkpoint.liveness import failure_text
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.model.manifest import Manifest
from midstream.model.time_line import Epoch

STEPS_BETWEEN_REMOVALS = 8
"""Manifests that are no longer kept go together: one removal a step would be a tenth of a small step's time. Meanwhile
they do not count.
"""


@dataclass(frozen=True)
class Writer:
    """A claim on a checkpoint, and the log that its steps commit in.

    A driver that was overtaken may still write: a manifest of an older epoch counts only up to the step at which the
    next epoch began, so what it publishes changes nothing; and it looks who is the newest after each manifest it
    publishes, before any sink hears of the step. So of two drivers one goes on, and every step is delivered by one of
    them, whatever pauses either.
    """

    manifests: ManifestLog
    claim: EpochClaim

    @staticmethod
    def take(manifests: ManifestLog, *, take_over: bool = False) -> Writer:
        """Become the writer; raises `HeldCheckpointError` where another process is, unless `take_over` is set."""
        return Writer(manifests, manifests.epochs.claim(take_over=take_over))

    def begin(self, manifest: Manifest) -> Manifest:
        """Publish the newest manifest, read after the claim, as the start of the epoch, and remove what others left.

        Returns: the manifest, with the epoch on its time line.
        """
        begun = manifest.in_epoch(Epoch(self.claim.number, self.claim.token, manifest.step + 1))
        self._publish(begun)
        self.manifests.forget_older(begun)
        return begun

    def commit(self, manifest: Manifest) -> None:
        """Publish the manifest of a step: the step is done when this returns.

        Raises `LostCheckpointError` where another driver has taken over: then the step is not done, or that driver will
        deliver it.
        """
        self._publish(manifest)
        if manifest.step % STEPS_BETWEEN_REMOVALS == 0:
            self.manifests.forget_older(manifest)

    def check(self) -> None:
        """Raise `LostCheckpointError` if another driver has taken over."""
        self.manifests.epochs.check(self.claim.number)

    def _publish(self, manifest: Manifest) -> None:
        self.manifests.add(manifest)
        self.check()

    def release(self, failure: BaseException | None = None) -> None:
        """Release the checkpoint and record what the job failed by, if it did.

        The next writer does not have to say that it takes over.
        """
        self.manifests.epochs.release(self.claim, failure_text(failure))
