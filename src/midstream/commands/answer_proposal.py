"""Say yes or no to a plan or a number of lanes that was proposed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from typing_extensions import override

from midstream.commands.base import StepCommand
from midstream.commands.migrate import Migrate
from midstream.commands.rescale import Rescale
from midstream.model.command import Prompt
from midstream.model.errors import QueryError
from midstream.model.events import Event, LanesProposalClosed, ProposalClosed
from midstream.model.optimization import ProposalState
from midstream.proposals.proposals import answer_proposal, close, waiting
from midstream.units.draft import Draft


@dataclass(frozen=True)
class _Answer(StepCommand, family=True):
    query: Annotated[str, Prompt("The query whose plan is proposed.", "QUERY", argument=True)] = ""
    plan: Annotated[
        str,
        Prompt("The proposed plan, as you read it; refused if another is proposed by now.", "PLAN", argument=True),
    ] = ""
    lanes: Annotated[int | None, Prompt("The number of lanes that is proposed.", "N", least=1)] = None

    state: ClassVar[ProposalState]

    @override
    def apply(self, draft: Draft) -> None:
        if bool(self.query) == (self.lanes is not None):
            raise QueryError(
                "the command must name exactly one proposal",
                place=self.kind,
                remedy="name either a query or the lanes",
            )
        if self.lanes is not None:
            answer_proposal(draft, self.lanes, self.state)
            self._go_on(draft, Rescale(self.lanes))
            return
        draft.entry(self.query)
        lead, proposal = waiting(draft.manifest, self.query, self.plan)
        close(draft, self.query, lead, self.state)
        self._go_on(draft, Migrate(lead, proposal.plan, proposal.strategy, together=True))

    def _go_on(self, draft: Draft, proposed: StepCommand) -> None:
        pass

    @override
    def is_done_by(self, event: Event) -> bool:
        if self.lanes is not None:
            return isinstance(event, LanesProposalClosed) and (event.lanes, event.state) == (self.lanes, self.state)
        return isinstance(event, ProposalClosed) and (event.query, event.state) == (self.query, self.state)


@dataclass(frozen=True)
class Approve(_Answer):
    """Accept the plan that is proposed for a query, to which all that share its plan move, or a number of lanes.

    A `plan` that is named must still be the proposed one: the stream may have moved on since it was read.
    """

    examples = (
        "ckpt pairs",
        "ckpt --lanes 16",
    )

    state = "approved"

    @override
    def _go_on(self, draft: Draft, proposed: StepCommand) -> None:
        proposed.apply(draft)


@dataclass(frozen=True)
class Reject(_Answer):
    """Reject the plan or the number of lanes that is proposed: none is proposed until it would save much more."""

    examples = ("ckpt pairs",)

    state = "rejected"
