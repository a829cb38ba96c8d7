"""How a plan is fed outside the step's own deltas, its output thrown away: what it is fed, from which queues.

Old rows are fed in one step (HybMig §4.1), or in the background while new ones wait in queues (§4.3, Fig. 14).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np

from midstream.model.counters import Counters
from midstream.model.ids import OperatorId
from midstream.model.window import EVENT_TIME, Clock
from midstream.operators.ensure import ensure, states_of
from midstream.operators.source import SourceOperator
from midstream.plan.signature import ViewName
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator
from midstream.state.combinations import Combinations, Words, concatenate, empty
from midstream.state.join_state import JoinState
from midstream.state.sorted_run import SortedRun
from midstream.state.specs import StateSpec


def feed(plan: Operator, view: ViewName, pieces: Mapping[OperatorId, Combinations], lane: Lane) -> None:
    """Run a plan over one more piece of each of its inputs and discard its output.

    `pieces` are by the ids of the inputs. Afterwards they count as old in the states that the plan has for itself under
    the view's name; nothing else in the lane has changed. The plan must not be advanced in the same step.
    """
    with lane.replaying(pieces):
        plan.delta(lane)
    for _, spec in states_of([plan]):
        if spec.signature.is_within(view) and (aged := lane.join(spec).age()):
            lane.count(spec.id.counted, Counters(inserted=aged))


def old_rows(unit: Operator, lane: Lane) -> Combinations:
    """Collect the living old combinations of a plan's input in order of time, from a state or joined again."""
    held = None if isinstance(unit, SourceOperator) else lane.sibling(unsorted(unit))
    if held is None:
        ensure(lane, states_of([unit]), event=False)
        found = unit.content(lane)
    else:
        found = concatenate([empty(*_shape(unit)), *(_ordered(piece, unit) for piece in held)])
    return found.take(found.valid_from[EVENT_TIME].argsort(kind="stable"))


def unsorted(unit: Operator) -> StateSpec:
    """Return the spec of a state that keeps an input's combinations in order of arrival."""
    return StateSpec(unit.signature.whole(), *_shape(unit), index="scan")


def _shape(unit: Operator) -> tuple[tuple[str, ...], tuple[Clock, ...]]:
    labels = tuple(sorted(unit.labels))
    return labels, unit.rows[labels[0]].clocks


def _ordered(combinations: Combinations, unit: Operator) -> Combinations:
    refs = {label: combinations.refs[label] for label in sorted(unit.labels)}
    return Combinations(refs, combinations.valid_from, combinations.valid_to)


def queue_of(unit: Operator, view: ViewName) -> StateSpec:
    """Return the spec of a view's queue of an input's combinations: first in, first out.

    Rows of a shared source wait no longer than they live: with its windows and filters their lifetimes change.
    """
    spec = unsorted(unit)
    base = unit.spec if isinstance(unit, SourceOperator) else None
    if base is not None and base.lineage is not None:
        base = replace(base, lineage=replace(base.lineage, cuts=()))
    return replace(spec, signature=spec.signature.within(view), base=base)


class Queue:
    """The queues of all inputs during one step, taken from together in order of time.

    Each queue keeps its own order, that of arrival; a combination's turn comes by the latest time up to it.
    """

    def __init__(self, states: Mapping[OperatorId, JoinState]) -> None:
        self._states = states
        self._arrived: dict[OperatorId, Combinations] = {}
        self._taken = dict.fromkeys(states, 0)

    def extend(self, arrived: Mapping[OperatorId, Combinations]) -> None:
        """Append the step's combinations of each input to its queue; call this once, first."""
        labels = {id: state.spec.labels for id, state in self._states.items()}
        self._arrived = {
            id: Combinations({label: c.refs[label] for label in labels[id]}, c.valid_from, c.valid_to)
            for id, c in arrived.items()
        }

    @cached_property
    def _waiting(self) -> dict[OperatorId, Combinations]:
        # What waited when the step began, followed by the step's own combinations.
        return {
            id: concatenate([*(run.combinations for run in state.old), self._arrived[id]])
            for id, state in self._states.items()
        }

    @cached_property
    def _turns(self) -> Words:
        # For each turn the index of the queue that is taken from.
        times = [np.maximum.accumulate(c.valid_from[EVENT_TIME]) for c in self._waiting.values()]
        owners = np.repeat(np.arange(len(times)), [len(t) for t in times])
        return owners[np.concatenate(times).argsort(kind="stable")]

    def __len__(self) -> int:
        return len(self._turns) - sum(self._taken.values())

    def take(self, count: int) -> dict[OperatorId, Combinations]:
        """Take the next `count` combinations, grouped by input."""
        begin = sum(self._taken.values())
        counts = np.bincount(self._turns[begin : begin + count], minlength=len(self._states))
        found = {}
        for (id, waiting), size in zip(self._waiting.items(), counts.tolist(), strict=True):
            found[id] = waiting.take(slice(self._taken[id], self._taken[id] + size))
            self._taken[id] += size
        return found

    def rest(self) -> list[JoinState]:
        """Return the queues without what was taken."""
        return [self._left(state, self._taken[id], self._arrived[id]) for id, state in self._states.items()]

    def _left(self, state: JoinState, taken: int, arrived: Combinations) -> JoinState:
        old, before = [], taken
        for run in state.old:
            gone = min(taken, len(run))
            old.append(run if not gone else SortedRun(None, run.combinations.take(slice(gone, None))))
            taken -= gone
        left = JoinState(state.spec, old, state.purged + before - taken)
        left.insert(SortedRun(None, arrived.take(slice(taken, None))))
        return left
