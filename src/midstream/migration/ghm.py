"""GHM: hybrid migration for black boxes (HybMig §4.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from typing_extensions import override

from midstream.migration.gpt import begin_empty
from midstream.migration.option import DECOMPOSE, Budget
from midstream.migration.predictions import beside
from midstream.migration.under_way.feeding import Queue, feed, old_rows, queue_of
from midstream.migration.under_way.lasting import Lasting
from midstream.migration.under_way.task import BegunTask
from midstream.migration.under_way.transition import Transition, apart
from midstream.model.counters import Counters
from midstream.model.ids import OperatorId
from midstream.optimizer.prediction import Prediction, Situation
from midstream.plan.signature import ViewKind, ViewName
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator
from midstream.state.combinations import Combinations
from midstream.state.join_state import JoinState
from midstream.state.sorted_run import SortedRun
from midstream.state.specs import StateSpec

BUDGET = Budget("budget", 100_000, "comparisons a step that the new plan may do; of an operator on top, rows a step")

FIRST_PIECE = 16
"""Rows fed before anything is known of what a row costs."""

ENOUGH = 0.95
"""The share of the budget that counts as used: every piece visits all states, and the last ones would be tiny."""


class GHM(Lasting):
    """Run the old plan as it is, and feed the new one in the background from queues: old rows first, then new ones.

    `budget` is what the new plan may do in a step, in comparisons; its output is thrown away. The migration ends once
    the queues are empty, for then both plans have seen the same; at the latest when every old row is spent: what waits
    then has all come since the migration began, and is fed at once.

    Differences from the paper: the old plan's priority is the budget; rows that die while they wait are not fed; the
    queues are states and survive a restart. With a budget of 0 the new plan is fed nothing until the end.
    """

    name: ClassVar[str] = "ghm"
    feeds = "queue"
    options = (DECOMPOSE, BUDGET)

    @override
    def transition(
        self, name: str, task: BegunTask, old: Operator | None, whole: Operator, options: Mapping[str, Any]
    ) -> Transition:
        new = apart(whole, ViewName(name, ViewKind.NEW), task.units)
        return GHMTransition(whole.signature, whole.rows, name, task, old, new, whole, options)

    @override
    def predict(self, situation: Situation) -> Prediction:
        return beside(situation, BUDGET.of(situation.options))


@dataclass(frozen=True)
class GHMTransition(Transition):
    """Gives the old plan's results and feeds the new one from a queue for each input (Fig. 14)."""

    @override
    def states(self) -> tuple[tuple[Operator, StateSpec], ...]:
        return tuple((unit, queue_of(unit, ViewName(self.name, ViewKind.QUEUE))) for unit in self.inputs())

    @override
    def enter(self, lane: Lane) -> None:
        begin_empty(self, lane)
        for unit, spec in self.states():
            waiting = old_rows(unit, lane)
            lane.put(JoinState(spec, [SortedRun(None, waiting)]))
            lane.count(OperatorId.of_state(spec.id), Counters(inserted=len(waiting)))

    @override
    def advance(self, lane: Lane) -> Combinations:
        assert self.old is not None
        results = self.old.drive(lane)
        queue = Queue({unit.id: lane.join(spec) for unit, spec in self.states()})
        queue.extend({unit.id: unit.delta(lane) for unit in self.inputs()})
        fed = self._consume(queue, lane)
        for state in queue.rest():
            lane.put(state)
        lane.count(self.id, Counters(rows_in=fed))
        return results

    def _consume(self, queue: Queue, lane: Lane) -> int:
        """Feed from the queues until the budget is used; the number of rows fed."""
        if self.task.is_spent(lane, self):
            return self._feed(queue, len(queue), lane)
        budget, begun = BUDGET.of(self.options), lane.comparisons
        used = fed = 0
        before = int(self.task.memory.get("fed", 0))
        size = min(self.task.memory.get("last", 0) // 4 or FIRST_PIECE, _most(before))
        while len(queue) and used < ENOUGH * budget:
            fed += self._feed(queue, size, lane)
            last, used = used, lane.comparisons - begun
            # A row costs more the more have been fed: the next piece aims at half of what is left.
            fitting = (budget - used) * size // (2 * (used - last)) if used > last else 2 * size
            size = max(1, min(2 * size, fitting, _most(before + fed)))
        return fed

    def _feed(self, queue: Queue, count: int, lane: Lane) -> int:
        pieces = queue.take(count)
        feed(self.new, ViewName(self.name, ViewKind.NEW), pieces, lane)
        return sum(map(len, pieces.values()))

    def waiting(self, lane: Lane) -> int:
        """How many rows are in the queues."""
        return sum(lane.join(spec).live for _, spec in self.states())

    def _fed(self, lane: Lane) -> int:
        return int(self.task.memory.get("fed", 0)) + self._fed_now(lane)

    def _fed_now(self, lane: Lane) -> int:
        return lane.counted(self.id).rows_in

    @override
    def is_over(self, lane: Lane) -> bool:
        return not self.waiting(lane)

    @override
    def remembered(self, lane: Lane) -> BegunTask:
        return replace(self.task, memory={"fed": self._fed(lane), "last": self._fed_now(lane)})

    @override
    def extra(self) -> Operator:
        return self.new

    @override
    def progress(self, lane: Lane) -> float:
        fed, waiting = self._fed(lane), self.waiting(lane)
        return max(fed / (fed + waiting) if waiting else 1.0, super().progress(lane))

    @override
    def phase(self, lane: Lane) -> str:
        return f"{self.waiting(lane)} rows wait to be fed to the new plan, its results go nowhere"

    @override
    def serves(self) -> tuple[str, str]:
        return "all results", "none until its queues are empty"

    @override
    def report(self, lane: Lane) -> dict[str, Any]:
        return {**super().report(lane), "queue": self.waiting(lane)}


def _most(fed: int) -> int:
    """The rows of a piece after so many have been fed.

    What a row costs grows with a power of their number, one for each join: a piece that doubled them would cost as much
    as all before it many times over, and no budget would hold.
    """
    return max(FIRST_PIECE, fed // 8)
