"""Let queries share what they join by another scheme."""

from __future__ import annotations

from dataclasses import dataclass, replace

from typing_extensions import override

from midstream.model.events import Event, SharingChanged
from midstream.model.manifest import Manifest
from midstream.sharing.chains import check_parts
from midstream.sharing.schemes.base import scheme
from midstream.step.commands.base import StepCommand
from midstream.step.draft import Draft


@dataclass(frozen=True)
class Reshare(StepCommand):
    """Let queries share what they join by another scheme, one of `midstream.sharing.schemes.base.schemes`."""

    sharing: str

    @override
    def apply(self, draft: Draft) -> None:
        scheme(self.sharing, "reshare")
        before = draft.manifest.sharing
        if self.sharing == before:
            return
        draft.manifest = replace(draft.manifest, sharing=self.sharing, reshared=draft.manifest.step)
        for name, entry in draft.manifest.queries.items():
            if entry.shares:
                check_parts(draft.manifest, name)
        draft.changed = True
        draft.events.append(SharingChanged(draft.manifest.step, before, self.sharing))

    @override
    def is_done_by(self, event: Event) -> bool:
        return isinstance(event, SharingChanged) and event.new == self.sharing

    @override
    def is_met(self, manifest: Manifest) -> bool:
        return manifest.sharing == self.sharing
