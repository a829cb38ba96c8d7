"""Moving state (Zhu §4.1, Algorithms 1 and 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from typing_extensions import override

from midstream.migration.predictions import rebuild_all
from midstream.migration.strategy_contract import Strategy
from midstream.operators.ensure import ensure, states_of
from midstream.optimizer.prediction import Prediction, Situation
from midstream.runtime.box import Box, PlanBox
from midstream.runtime.lane import Lane


class MovingState(Strategy):
    """Match states by signature, list what matches, compute what is missing from below, drop the old plan.

    Differences from the paper: matching states are listed in place, so nothing is copied; the condition for discarding
    old states (§4.1.3) holds by construction, because purging is lazy and every living combination has its base rows in
    base states; accumulated tuples need no cleaning, since a migration begins between two steps. The output is silent
    for as long as the missing states take, and their comparisons are charged to that step.
    """

    name: ClassVar[str] = "moving_state"

    @override
    def begin(self, old: Box, new: PlanBox, lane: Lane, options: Mapping[str, Any], mark: str) -> Box:
        # The old plan's states are loaded first: what matches need not be computed, only listed.
        ensure(lane, states_of(old.operators()), event=False)
        ensure(lane, states_of(new.roots), event=False)
        return new

    @override
    def predict(self, situation: Situation) -> Prediction:
        return rebuild_all(situation)
