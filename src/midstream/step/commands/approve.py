"""Say yes to a plan that was proposed."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from midstream.model.events import Event, ProposalClosed
from midstream.step.commands.base import StepCommand
from midstream.step.commands.migrate import Migrate
from midstream.step.draft import Draft
from midstream.step.reviewing.proposals import close, waiting


@dataclass(frozen=True)
class Approve(StepCommand):
    """Carry a query to the plan that is proposed for it, with all that share its plan.

    A `plan` that is named must still be the proposed one: the stream may have moved on since it was read.
    """

    query: str
    plan: str = ""

    @override
    def apply(self, draft: Draft) -> None:
        draft.entry(self.query)
        lead, proposal = waiting(draft.manifest, self.query, self.plan)
        close(draft, self.query, lead, "approved")
        Migrate(lead, proposal.plan, proposal.strategy, {}, None, together=True).apply(draft)

    @override
    def is_done_by(self, event: Event) -> bool:
        return isinstance(event, ProposalClosed) and event.query == self.query and event.state == "approved"
