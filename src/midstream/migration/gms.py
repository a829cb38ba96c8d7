"""GMS: moving states for black boxes (HybMig §4.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from midstream.migration.gpt import begin_empty
from midstream.migration.predictions import replay_all
from midstream.migration.under_way.feeding import feed, old_rows
from midstream.migration.under_way.lasting import LastingApart
from midstream.migration.under_way.transition import Transition
from midstream.optimizer.prediction import Prediction, Situation
from midstream.plan.signature import ViewKind, ViewName
from midstream.runtime.lane import Lane
from midstream.state.combinations import Combinations


@dataclass(frozen=True)
class GMSTransition(Transition):
    """Done as soon as it is entered."""

    @override
    def enter(self, lane: Lane) -> None:
        begin_empty(self, lane)
        feed(
            self.new, ViewName(self.name, ViewKind.NEW), {unit.id: old_rows(unit, lane) for unit in self.inputs()}, lane
        )

    @override
    def is_idle(self) -> bool:
        return True

    @override
    def advance(self, lane: Lane) -> Combinations:
        return self.new.delta(lane)

    @override
    def extra(self) -> None:
        return None

    @override
    def phase(self, lane: Lane) -> str:
        return "the old rows are fed to the new plan"

    @override
    def serves(self) -> tuple[str, str]:
        return "none", "all results"


class GMS(LastingApart):
    """Feed the old rows of the last window to the new plan, its output thrown away; then it takes over.

    The plan need only be one that can be fed: unlike moving states, every join is run, the topmost included,
    and no state of the old plan is used. The output is silent for as long as that takes.

    Differences from the paper: the rows are fed as one set, which compares what one row after the other would, for
    windows are decided per pair; only rows that may still matter are fed, though they arrived longer ago than a window.
    """

    made = GMSTransition
    name: ClassVar[str] = "gms"
    feeds = "at once"
    keeps_old: ClassVar[bool] = False

    @override
    def predict(self, situation: Situation) -> Prediction:
        return replay_all(situation)
