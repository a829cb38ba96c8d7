"""Say no to a plan that was proposed."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from midstream.model.events import Event, ProposalClosed
from midstream.step.commands.base import StepCommand
from midstream.step.draft import Draft
from midstream.step.reviewing.proposals import close, waiting


@dataclass(frozen=True)
class Reject(StepCommand):
    """Refuse the plan that is proposed for a query: none is proposed until it would save much more."""

    query: str
    plan: str = ""

    @override
    def apply(self, draft: Draft) -> None:
        draft.entry(self.query)
        lead, _ = waiting(draft.manifest, self.query, self.plan)
        close(draft, self.query, lead, "rejected")

    @override
    def is_done_by(self, event: Event) -> bool:
        return isinstance(event, ProposalClosed) and event.query == self.query and event.state == "rejected"
