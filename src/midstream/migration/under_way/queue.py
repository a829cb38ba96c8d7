"""The queues between a plan's inputs and the plan, while GHM feeds it in the background (HybMig §4.3, Fig. 14)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np

from midstream.migration.under_way.replay import unsorted
from midstream.model.window import EVENT_TIME
from midstream.operators.source import SourceOperator
from midstream.plan.signature import ViewName
from midstream.runtime.operator import Operator
from midstream.state.combinations import Combinations, Words, concatenate
from midstream.state.join_state import JoinState
from midstream.state.sorted_run import SortedRun
from midstream.state.specs import StateSpec


def queue_of(unit: Operator, view: ViewName) -> StateSpec:
    """The state, under a view's name, in which an input's combinations wait: first come, first out.

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

    def __init__(self, states: Mapping[str, JoinState]) -> None:
        self._states = states
        self._arrived: dict[str, Combinations] = {}
        self._taken = dict.fromkeys(states, 0)

    def extend(self, arrived: Mapping[str, Combinations]) -> None:
        """Put the step's combinations of each input at the end of its queue; to be called once, first."""
        labels = {id: state.spec.labels for id, state in self._states.items()}
        self._arrived = {
            id: Combinations({label: c.refs[label] for label in labels[id]}, c.valid_from, c.valid_to)
            for id, c in arrived.items()
        }

    @cached_property
    def _waiting(self) -> dict[str, Combinations]:
        """All that waited when the step began, and the step's own behind it."""
        return {
            id: concatenate([*(run.combinations for run in state.old), self._arrived[id]])
            for id, state in self._states.items()
        }

    @cached_property
    def _turns(self) -> Words:
        """The place of the queue whose turn it is, for each turn."""
        times = [np.maximum.accumulate(c.valid_from[EVENT_TIME]) for c in self._waiting.values()]
        owners = np.repeat(np.arange(len(times)), [len(t) for t in times])
        return owners[np.concatenate(times).argsort(kind="stable")]

    def __len__(self) -> int:
        return len(self._turns) - sum(self._taken.values())

    def take(self, count: int) -> dict[str, Combinations]:
        """The next so many combinations, of each input."""
        begin = sum(self._taken.values())
        counts = np.bincount(self._turns[begin : begin + count], minlength=len(self._states))
        found = {}
        for (id, waiting), size in zip(self._waiting.items(), counts.tolist(), strict=True):
            found[id] = waiting.take(slice(self._taken[id], self._taken[id] + size))
            self._taken[id] += size
        return found

    def rest(self) -> list[JoinState]:
        """The queues as they are left."""
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
