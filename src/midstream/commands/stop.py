"""End a running job after the step that takes this."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from midstream.commands.base import StepCommand
from midstream.model.errors import QueryError
from midstream.model.events import Event, StopRequested
from midstream.model.manifest import Manifest
from midstream.units.draft import Draft


@dataclass(frozen=True)
class Stop(StepCommand):
    """End the job that runs in this epoch, once the step that takes the command is committed and delivered.

    A job that is started later is in a later epoch: it runs, for the one that was meant has ended.
    """

    epoch: int

    verb = None

    @override
    def apply(self, draft: Draft) -> None:
        current = draft.manifest.epochs[-1].number if draft.manifest.epochs else 0
        if self.epoch > current:
            raise QueryError(
                f"no run has epoch {self.epoch} yet",
                place="stop",
                remedy=f"use epoch {current}, which is the epoch of the present run",
            )
        if self.epoch == current:
            draft.events.append(StopRequested(draft.manifest.step))

    @override
    def is_done_by(self, event: Event) -> bool:
        return isinstance(event, StopRequested)

    @override
    def is_met(self, manifest: Manifest) -> bool:
        return bool(manifest.epochs) and manifest.epochs[-1].number > self.epoch
