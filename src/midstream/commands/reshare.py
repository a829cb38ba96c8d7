"""Let queries share what they join by another scheme."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from typing_extensions import override

from midstream.commands.base import StepCommand
from midstream.model.command import Prompt
from midstream.model.events import Event, SharingChanged
from midstream.model.manifest import Manifest
from midstream.sharing.chains import check_parts
from midstream.sharing.schemes.scheme_contract import scheme, schemes
from midstream.units.draft import Draft


@dataclass(frozen=True)
class Reshare(StepCommand):
    """Let the queries of a job share rows and work by another scheme; no answer changes.

    Queries that share already go on in their chains; one that began under `off` stays by itself.
    """

    examples = ("ckpt mem_opt",)

    sharing: Annotated[
        str,
        Prompt("auto, mem_opt, cpu_opt, pull_up, push_down or off; see docs/sharing.md.", "SCHEME", choices=schemes),
    ]

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
