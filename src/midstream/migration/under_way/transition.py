"""Where an old and a new subplan meet while a migration is under way: one operator, each combination once.

A transition stands in the plan where its subplan will stand, so operators above it, other migrations included, take it
for any other operator. That is what makes migrations overlap and decomposition serve every strategy.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from typing_extensions import override

from midstream.migration.under_way.migration_task import BegunTask, nodes
from midstream.model.counters import Counters
from midstream.model.ids import OperatorId
from midstream.operators.match import keyed, match
from midstream.operators.window_join import WindowJoin
from midstream.plan.decompose import Sources
from midstream.plan.signature import ViewName
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator, View
from midstream.state.combinations import Combinations, Words, concatenate, empty
from midstream.state.join_state import JoinState
from midstream.state.sorted_run import SortedRun
from midstream.state.specs import StateSpec

Bits = Callable[[Combinations], Words]
"""The bitmap of each combination."""


def restricted(
    lane: Lane,
    operator: WindowJoin,
    deltas: tuple[Combinations, Combinations],
    bits: tuple[Bits, Bits],
    full: int,
) -> Combinations:
    """Compute a join's delta without pairs whose bitmaps together are `full`; probes with these deltas, inserts
    nothing."""
    on = operator.on
    left = _told_apart([keyed(lane, operator.rows, deltas[0], on.index, on.left_key)], bits[0])
    right = _told_apart([keyed(lane, operator.rows, deltas[1], on.index, on.right_key)], bits[1])
    old_left = _told_apart(lane.join(operator.left_state).old, bits[0]) if len(deltas[1]) else []
    old_right = _told_apart(lane.join(operator.right_state).old, bits[1]) if len(deltas[0]) else []
    found = []
    for ones, others in ((left, old_right), (old_left, right), (left, right)):
        for one, mine in ones:
            for other, theirs in others:
                if mine | theirs != full and len(one) and len(other):
                    found.append(match(lane, operator.rows, operator.id, on, one, other))
    lane.count(operator.id, Counters(rows_in=len(deltas[0]) + len(deltas[1])))
    some = [f for f in found if len(f)]
    labels = (*operator.left_state.labels, *operator.right_state.labels)
    return operator.needed(lane, concatenate(some)) if some else empty(labels, operator.left_state.clocks)


def _told_apart(runs: Sequence[SortedRun], bits: Bits) -> list[tuple[SortedRun, int]]:
    # A run with a single bitmap stays as it is.
    found = []
    for run in runs:
        words = bits(run.combinations)
        for value in np.unique(words) if len(words) else (0,):
            mine = words == value
            found.append((run if mine.all() else run.take(mine), int(value)))
    return found


@dataclass(frozen=True)
class Transition(Operator):
    """An operator that is two plans: `old` and `new` in views of their own, and the `whole` that `new` becomes.

    `name` is unique among the migrations of a query; views are named by it.
    """

    name: str
    task: BegunTask
    old: Operator | None
    new: Operator
    whole: Operator
    options: Mapping[str, Any]

    @override
    @cached_property
    def id(self) -> OperatorId:
        return OperatorId("transition", f"{self.name} {self.signature.digest()}")

    @override
    @cached_property
    def labels(self) -> Sources:
        return self.task.sources

    @override
    def children(self) -> tuple[Operator, ...]:
        return (self.new,) if self.old is None else (self.old, self.new)

    @override
    def inputs(self) -> tuple[Operator, ...]:
        return self.units

    @cached_property
    def units(self) -> tuple[Operator, ...]:
        """The subplans that both plans read."""
        below = nodes(self.whole)
        return tuple(below[unit] for unit in sorted(self.task.units, key=sorted))

    @override
    def target(self) -> Operator:
        return self.whole

    @override
    def states(self) -> tuple[tuple[Operator, StateSpec], ...]:
        return ()

    @override
    def in_view(self, view: View) -> Self:
        raise TypeError("a transition has a view for each plan, and no view of its own")

    @override
    def content(self, lane: Lane) -> Combinations:
        return derived(self.whole, self.task.units, lane)

    @override
    def describe(self) -> str:
        return f"transition to {self.whole.describe()}"

    @abstractmethod
    def enter(self, lane: Lane) -> None:
        """Make the states of the views, at the beginning of the first step."""

    def is_over(self, lane: Lane) -> bool:
        """Return whether, after a step, the new plan can run alone: as a rule, once the old rows are spent."""
        return self.task.is_spent(lane, self)

    def leave(self, lane: Lane) -> None:
        """Register the new plan's states as whole ones."""
        for part, whole in zip(self.new.walk(), self.whole.walk(), strict=True):
            for (_, before), (_, after) in zip(part.states(), whole.states(), strict=True):
                if before.id != after.id:
                    lane.adopt(before, after)

    def remembered(self, lane: Lane) -> BegunTask:
        """Return the task to go on with in the next step."""
        return self.task

    def extra(self) -> Operator | None:
        """Return the plan whose comparisons the migration causes."""
        return self.old

    def withheld(self, lane: Lane) -> Combinations | None:
        """Return results of this step to be kept back, after `advance`; None once nothing is."""
        return None

    def is_idle(self) -> bool:
        """Return whether there is nothing to do from the beginning."""
        return False

    def cost(self, lane: Lane) -> int:
        """Count this step's comparisons that the migration causes."""
        extra = self.extra()
        below = {op.id for unit in self.inputs() for op in unit.walk()}
        ids = {self.id} | ({op.id for op in extra.walk()} - below if extra else set())
        return sum(lane.counted(id).comparisons for id in ids)

    @abstractmethod
    def phase(self, lane: Lane) -> str:
        """Describe what the transition is doing, in a few words."""

    @abstractmethod
    def serves(self) -> tuple[str, str]:
        """Describe which results the old plan still makes, and which the new one already makes."""

    def progress(self, lane: Lane) -> float:
        """Return how far the transition has come, from 0 to 1."""
        return self.task.progress(lane, self)

    def report(self, lane: Lane) -> dict[str, Any]:
        """Report the state of the transition as JSON values; `predicted_end` is event time in microseconds."""
        old, new = self.serves()
        return {
            "phase": self.phase(lane),
            "progress": round(self.progress(lane), 3),
            "old_serves": old,
            "new_serves": new,
            "predicted_end": self.task.last,
        }


def derived(operator: Operator, units: frozenset[Sources], lane: Lane) -> Combinations:
    """Join the living combinations of old rows over an operator's sources, up from the units below it."""
    if operator.labels in units or not isinstance(operator, WindowJoin):
        for producer, spec in operator.states():
            if not lane.holds(spec) and not spec.signature.view:
                content = producer.content(lane)
                lane.put(JoinState(spec, [keyed(lane, producer.rows, content, spec.index, spec.key)]))
        return operator.content(lane)
    left, right = (derived(child, units, lane) for child in operator.children())
    one = keyed(lane, operator.rows, left, operator.on.index, operator.on.left_key)
    other = keyed(lane, operator.rows, right, operator.on.index, operator.on.right_key)
    return operator.needed(lane, match(lane, operator.rows, operator.id, operator.on, one, other))


def grafted(operator: Operator, units: Mapping[Sources, Operator], done: dict[int, Operator] | None = None) -> Operator:
    """Replace operators by given ones over the same sources; `done` maps operators that were met before."""
    done = {} if done is None else done
    if operator.labels in units:
        return units[operator.labels]
    if id(operator) not in done:
        if isinstance(operator, Transition):
            old = operator.old and grafted(operator.old, units, done)
            new, whole = grafted(operator.new, units, done), grafted(operator.whole, units, done)
            done[id(operator)] = replace(operator, old=old, new=new, whole=whole)
        else:
            done[id(operator)] = operator.with_children([grafted(c, units, done) for c in operator.children()])
    return done[id(operator)]


def apart(whole: Operator, view: ViewName, units: frozenset[Sources]) -> Operator:
    """Return the plan with states of its own, including those of its units."""
    operators = inner(whole, units) | {whole.labels}
    return whole.in_view(View(view, operators, (operators - {whole.labels}) | units))


def inner(operator: Operator, units: frozenset[Sources]) -> frozenset[Sources]:
    """Return the sources of the joins strictly between a subplan's root and its units."""
    return frozenset(join.labels for join in joins_above(operator, units)) - {operator.labels}


def joins_above(operator: Operator, units: frozenset[Sources]) -> Iterator[WindowJoin]:
    """Walk the joins of a subplan down to its units, the root first."""
    if operator.labels not in units and isinstance(operator, WindowJoin):
        yield operator
        for child in operator.children():
            yield from joins_above(child, units)
