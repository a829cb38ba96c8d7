"""Say yes or no to a number of lanes that was proposed."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from midstream.model.events import Event, LanesProposalClosed
from midstream.step.commands.base import StepCommand
from midstream.step.commands.rescale import Rescale
from midstream.step.draft import Draft
from midstream.step.reviewing.lane_review import answer_proposal


@dataclass(frozen=True)
class ApproveLanes(StepCommand):
    """Spread the state over the number of lanes that is proposed; it must be named, for another one may be by now."""

    lanes: int

    @override
    def apply(self, draft: Draft) -> None:
        answer_proposal(draft, self.lanes, "approved")
        Rescale(self.lanes).apply(draft)

    @override
    def is_done_by(self, event: Event) -> bool:
        return isinstance(event, LanesProposalClosed) and event.lanes == self.lanes and event.state == "approved"


@dataclass(frozen=True)
class RejectLanes(StepCommand):
    """Refuse the number of lanes that is proposed: none is proposed until it would save much more."""

    lanes: int

    @override
    def apply(self, draft: Draft) -> None:
        answer_proposal(draft, self.lanes, "rejected")

    @override
    def is_done_by(self, event: Event) -> bool:
        return isinstance(event, LanesProposalClosed) and event.lanes == self.lanes and event.state == "rejected"
