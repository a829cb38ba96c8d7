"""Pause, drain, resume (Zhu §1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from typing_extensions import override

from midstream.migration.strategy_contract import MigrationRequest, Strategy
from midstream.optimizer.prediction import Prediction, Situation
from midstream.runtime.box import Box, PlanBox
from midstream.runtime.lane import Lane


class PauseDrainResume(Strategy):
    """Stop, let the queues run empty, swap the plans, go on.

    Between two steps no tuple is in a queue, so draining is done before it begins. A stateful box is refused: its
    states are purged only by new input, which the pause holds back, so it would wait forever (the deadlock of Zhu §1).
    """

    name: ClassVar[str] = "pause_drain_resume"

    @override
    def refusal(self, move: MigrationRequest) -> str | None:
        if not move.stateful:
            return None
        return (
            "the box is stateful: draining waits until its old rows are purged, but only new rows purge them, "
            "and the pause holds those back (the deadlock of Zhu §1)"
        )

    @override
    def begin(self, old: Box, new: PlanBox, lane: Lane, options: Mapping[str, Any], mark: str) -> Box:
        return new

    @override
    def predict(self, situation: Situation) -> Prediction:
        return Prediction()
