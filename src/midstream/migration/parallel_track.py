"""Parallel track (Zhu §4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from midstream.migration.base import MigrationRequest
from midstream.migration.gpt import begin_empty
from midstream.migration.option import DECOMPOSE, Flag, OneOf
from midstream.migration.predictions import both_plans
from midstream.migration.under_way.lasting import Lasting
from midstream.migration.under_way.restricted import restricted
from midstream.migration.under_way.task import BegunTask
from midstream.migration.under_way.transition import Transition, apart, inner
from midstream.operators.match import keyed
from midstream.operators.window_join import WindowJoin
from midstream.optimizer.prediction import Prediction, Situation
from midstream.plan.signature import ViewKind, ViewName
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator
from midstream.state.combinations import Combinations, Words, concatenate

HOLD_NEW = Flag("hold_new", False, "keep the new plan's results back until the old plan is done (Zhu §4.2)")
PURGE = OneOf("purge", "watermark", "when old rows go: by the watermark, or by Zhu's rule", ("watermark", "zhu"))


class ParallelTrack(Lasting):
    """Run both plans until the old one has only new tuples; its root makes no all-new result, the new plan makes those.

    `hold_new` keeps the new plan's results back until the old plan is done, as in the paper, and releases them in one
    burst; without it they go out at once, which the max ordering of HybMig §2.1 allows. `purge="zhu"` waits for 2W
    where the old plan is higher than one join, which follows from the paper's purge rule (Lemma 2.2: min against max);
    `"watermark"` ends as soon as no old row can be joined any more: W under max ordering (HybMig §3.5).
    Differences from the paper: payload is stored once for both plans; results held back have left the plan already and
    wait as rows of the answer.
    """

    name: ClassVar[str] = "parallel_track"
    options = (DECOMPOSE, HOLD_NEW, PURGE)

    @override
    def refusal(self, move: MigrationRequest) -> str | None:
        if HOLD_NEW.of(move.options) and not move.plain:
            return (
                "hold_new keeps rows of the answer back, but an aggregate, a difference or an operator on top "
                "must know all of them in time"
            )
        return None

    @override
    def is_whole(self, options: Mapping[str, Any]) -> bool:
        # What is held back must be the answer itself: inside a plan its partners would be purged meanwhile.
        return HOLD_NEW.of(options) or super().is_whole(options)

    @override
    def nested(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**options, HOLD_NEW.name: False} if HOLD_NEW.of(options) else options

    @override
    def transition(
        self, name: str, task: BegunTask, old: Operator | None, whole: Operator, options: Mapping[str, Any]
    ) -> Transition:
        new = apart(whole, ViewName(name, ViewKind.NEW), task.units)
        return ParallelTransition(whole.signature, whole.rows, name, task, old, new, whole, options)

    @override
    def predict(self, situation: Situation) -> Prediction:
        return both_plans(
            situation,
            hold_new=HOLD_NEW.of(situation.options),
            zhu_purge=PURGE.of(situation.options) == "zhu",
        )


@dataclass(frozen=True)
class ParallelTransition(Transition):
    """The old plan without all-new results, and the new plan over new rows only."""

    @override
    def enter(self, lane: Lane) -> None:
        begin_empty(self, lane)

    @override
    def advance(self, lane: Lane) -> Combinations:
        late, results = self._late(lane), self.new.delta(lane)
        late = Combinations({s: late.refs[s] for s in results.refs}, late.valid_from, late.valid_to)
        if self.is_held(lane):
            return late
        return concatenate([late, results])

    @override
    def withheld(self, lane: Lane) -> Combinations | None:
        return self.new.delta(lane) if self.is_held(lane) else None

    def is_held(self, lane: Lane) -> bool:
        """Whether new results are kept back in this step."""
        return HOLD_NEW.of(self.options) and not self.is_over(lane)

    @override
    def is_over(self, lane: Lane) -> bool:
        return self.task.is_spent(lane, self, self._longer())

    @override
    def phase(self, lane: Lane) -> str:
        return "both plans run" + (", new results are held back" if HOLD_NEW.of(self.options) else "")

    @override
    def serves(self) -> tuple[str, str]:
        return "results with an old row", "results of new rows only"

    def _longer(self) -> int:
        """How long Zhu's purge rule lets mixed tuples live beyond their old rows."""
        assert self.old is not None
        if PURGE.of(self.options) != "zhu" or not inner(self.old, self.task.units):
            return 0
        windows = [spec.window for spec in self.rows.values() if spec.label in self.labels and spec.window]
        return max((window.size for window in windows if window.kind == "range"), default=0)

    def _late(self, lane: Lane) -> Combinations:
        """What the old plan still has to make: its root joins no two all-new combinations (Zhu §4.2.1)."""
        old = self.old
        assert old is not None
        if not isinstance(old, WindowJoin) or lane.has_delta(old.id):
            found = old.drive(lane)
            return found.take(self._all_new(found) == 0)
        left, right = old.left.drive(lane), old.right.drive(lane)
        found = restricted(lane, old, (left, right), (self._all_new, lambda c: 2 * self._all_new(c)), full=3)
        for spec, key, delta in (
            (old.left_state, old.on.left_key, left),
            (old.right_state, old.on.right_key, right),
        ):
            lane.join(spec).insert(keyed(lane, old.rows, delta, old.on.index, key))
        return found

    def _all_new(self, combinations: Combinations) -> Words:
        """Which have nothing old; of a subplan that both plans share, what was made before the start is old."""
        new = np.ones(len(combinations), np.bool_)
        for unit in self.task.units:
            fresh = [combinations.refs[label] >= self.task.start[label] for label in unit & combinations.refs.keys()]
            new &= np.logical_or.reduce(fresh) if fresh else True
        return new.astype(np.int64)
