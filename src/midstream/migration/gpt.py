"""GPT: parallel track for black boxes (HybMig §4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from midstream.migration.predictions import beside
from midstream.migration.under_way.lasting import LastingApart
from midstream.migration.under_way.transition import Transition
from midstream.optimizer.prediction import Prediction, Situation
from midstream.plan.signature import ViewKind, ViewName
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator
from midstream.state.combinations import Combinations
from midstream.state.join_state import JoinState


@dataclass(frozen=True)
class GPTTransition(Transition):
    """Gives the old plan's results and feeds the new one, which began empty."""

    @override
    def enter(self, lane: Lane) -> None:
        begin_empty(self, lane)

    @override
    def advance(self, lane: Lane) -> Combinations:
        assert self.old is not None
        self.new.delta(lane)
        return self.old.drive(lane)

    @override
    def extra(self) -> Operator:
        return self.new

    @override
    def phase(self, lane: Lane) -> str:
        return "the new plan runs too, without output"

    @override
    def serves(self) -> tuple[str, str]:
        return "all results", "none until the old rows are spent"


class GPT(LastingApart):
    """Run the new plan next to the old one, its output thrown away, until no old row matters any more.

    The plan need only be one that can be fed. The output never stops, and the new rows are worked on twice.
    Difference from the paper: payload is stored once; only what finds it is kept twice.
    """

    made = GPTTransition
    name: ClassVar[str] = "gpt"
    feeds = "beside"

    @override
    def predict(self, situation: Situation) -> Prediction | None:
        return beside(situation)


def begin_empty(transition: Transition, lane: Lane) -> None:
    """Put an empty state wherever the new plan has one of its own."""
    for operator in transition.new.walk():
        for _, spec in operator.states():
            if spec.signature.is_within(ViewName(transition.name, ViewKind.NEW)):
                lane.put(JoinState(spec, []))
