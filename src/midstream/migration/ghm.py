"""GHM: hybrid migration for black boxes (HybMig §4.3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from typing_extensions import override

from midstream.migration.gpt import begin_empty
from midstream.migration.option import DECOMPOSE, Budget
from midstream.migration.predictions import beside
from midstream.migration.under_way.feeding import Queue, feed, old_rows, queue_of
from midstream.migration.under_way.lasting import LastingApart
from midstream.migration.under_way.migration_task import BegunTask
from midstream.migration.under_way.transition import Transition
from midstream.model.counters import Counters
from midstream.optimizer.prediction import Prediction, Situation
from midstream.plan.signature import ViewKind, ViewName
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator
from midstream.state.combinations import Combinations
from midstream.state.join_state import JoinState
from midstream.state.sorted_run import SortedRun
from midstream.state.specs import StateSpec

BUDGET = Budget(
    "budget",
    100_000,
    "comparisons a step that the new plan may do; of an operator on top, rows a step",
    least=1,  # With no budget the queue would never become empty.
)

FIRST_PIECE = 16
"""Rows fed before anything is known of what a row costs."""

BEHIND = "all of them came since it began: the budget is little or nothing more than they need"
"""What the phase says once the old rows are spent."""

AIM = 3
"""A piece aims at one part in so many of what is left of the budget."""

DEAREST = 6
"""No row is fed where less is left of the budget than this many times what a row costs."""


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
            lane.count(spec.id.counted, Counters(inserted=len(waiting)))

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
        # Returns the number of rows fed.
        memory, begun = self.task.memory, lane.comparisons
        # What a piece costs is known only afterwards: a step pays for what the one before spent above the budget.
        budget = BUDGET.of(self.options) - int(memory.get("over", 0))
        before, cost = int(memory.get("fed", 0)), float(memory.get("cost", 0.0))
        used = fed = 0
        while len(queue) and budget - used > (DEAREST * cost if fed else 0):
            most = _most(before + fed)
            size = max(1, min(most, int((budget - used) / (AIM * cost)))) if cost else most
            piece = self._feed(queue, min(size, len(queue)), lane)
            last, used = used, lane.comparisons - begun
            fed += piece
            cost = max(cost, used / fed, (used - last) / piece if piece >= FIRST_PIECE else 0.0)
        mean = used / fed if fed else cost
        lane.note(self.id, {"fed": before + fed, "cost": mean, "over": max(used - budget, 0)})
        return fed

    def _feed(self, queue: Queue, count: int, lane: Lane) -> int:
        pieces = queue.take(count)
        feed(self.new, ViewName(self.name, ViewKind.NEW), pieces, lane)
        return sum(map(len, pieces.values()))

    def waiting(self, lane: Lane) -> int:
        """Count the rows in the queues."""
        return sum(lane.join(spec).live for _, spec in self.states())

    def _fed(self, lane: Lane) -> int:
        return int(lane.noted(self.id, self.task.memory).get("fed", 0))

    @override
    def is_over(self, lane: Lane) -> bool:
        return not self.waiting(lane)

    @override
    def remembered(self, lane: Lane) -> BegunTask:
        return replace(self.task, memory=lane.noted(self.id))

    @override
    def extra(self) -> Operator:
        return self.new

    @override
    def progress(self, lane: Lane) -> float:
        fed, waiting = self._fed(lane), self.waiting(lane)
        return fed / (fed + waiting) if waiting else 1.0

    @override
    def phase(self, lane: Lane) -> str:
        phase = f"{self.waiting(lane)} rows wait for the new plan, which has no output yet"
        return f"{phase}; {BEHIND}" if self.task.is_spent(lane, self) else phase

    @override
    def serves(self) -> tuple[str, str]:
        return "all results", "none until its queues are empty"

    @override
    def report(self, lane: Lane) -> dict[str, Any]:
        # The queues say when it ends, not the lifetime of the old rows.
        return {**super().report(lane), "queue": self.waiting(lane), "predicted_end": None}


class GHM(LastingApart):
    """Run the old plan as it is, and feed the new one in the background from queues: old rows first, then new ones.

    `budget` is what the new plan may do in a step, in comparisons; its output is thrown away. The migration ends when
    the queues are empty, because both plans have then seen the same rows. It does not end before: a budget below what
    the new plan needs for the rows of a step leaves the queues about as long as they are, as in the paper, whose
    duration is then infinite. The phase says so once the old rows are spent.

    Differences from the paper: the budget stands for the old plan's higher priority; rows that die while they wait are
    not fed, so a queue never holds more than a window; the queues are states and survive a restart. What a row
    costs is known only afterwards: a step that spends more than its budget takes it from the next one.
    """

    made = GHMTransition
    name: ClassVar[str] = "ghm"
    feeds = "queue"
    options = (DECOMPOSE, BUDGET)

    @override
    def predict(self, situation: Situation) -> Prediction | None:
        return beside(situation, BUDGET.of(situation.options))


def _most(fed: int) -> int:
    # A row's cost grows with a power of the number of rows in a piece, one factor for each join: a piece that doubled
    # them would cost as much as all before it many times over, and no budget would hold.
    return max(FIRST_PIECE, fed // 8)
