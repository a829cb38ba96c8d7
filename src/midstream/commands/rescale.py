"""Spread the state over another number of lanes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from typing_extensions import override

from midstream.commands.base import StepCommand
from midstream.model.command import Prompt
from midstream.model.errors import QueryError
from midstream.model.events import Event, LanesRescaled
from midstream.model.manifest import Manifest
from midstream.runtime.lane_key import SLOTS
from midstream.units.draft import Draft


@dataclass(frozen=True)
class Rescale(StepCommand):
    """Spread the state of a running job over another number of lanes; no row is lost and no answer changes."""

    examples = ("ckpt --lanes 16",)

    lanes: Annotated[int, Prompt("The new number of lanes, the partitions of the state.", least=1, most=SLOTS)]

    @override
    def apply(self, draft: Draft) -> None:
        check_lanes(self.lanes)
        before = draft.manifest.lanes
        if self.lanes != before:
            draft.manifest = replace(draft.manifest, lanes=self.lanes)
            draft.events.append(LanesRescaled(draft.manifest.step, before, self.lanes))

    @override
    def is_done_by(self, event: Event) -> bool:
        return isinstance(event, LanesRescaled) and event.new == self.lanes

    @override
    def is_met(self, manifest: Manifest) -> bool:
        return manifest.lanes == self.lanes


def check_lanes(lanes: int) -> None:
    """Raise unless a job can have so many lanes."""
    if not isinstance(lanes, int) or not 1 <= lanes <= SLOTS:
        raise QueryError(f"the number of lanes cannot be {lanes}", place="lanes", remedy=f"use 1 to {SLOTS}")
