"""Background state computation (HybMig §3.4, Figs. 11 and 12): missing states are filled with spare time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from midstream.migration.hybrid.characteristics import CharacteristicsTable, Entry
from midstream.model.ids import OperatorId
from midstream.model.window import EVENT_TIME
from midstream.operators.match import keyed, match
from midstream.operators.window_join import WindowJoin
from midstream.plan.signature import ViewName
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator
from midstream.state.combinations import concatenate
from midstream.state.join_state import JoinState
from midstream.state.sorted_run import SortedRun
from midstream.state.specs import StateSpec

GROWTH, MOST = 4, 1 << 16
"""A step's first piece is one row, each next one at most so many times the one before; rows of the largest piece."""


@dataclass(frozen=True)
class Background:
    """Completes the states that entries of the table lack, newest rows first, within a budget of comparisons a step.

    The reverse-time symmetric join of Fig. 12: the next older rows of either side meet all newer ones of the other, so
    after each piece everything among the rows from `cursor` on has been found, and what is still missing are the rows
    that are spent first. Results are gathered in a state of their own, which is listed with the running one when the
    entry is finished. The entry then goes up: what the join's parent still lacks are the same old combinations with
    everything that has arrived on its other side until now; the root lacks nothing.
    """

    operator: OperatorId
    new: Operator
    view: ViewName

    def work(
        self, lane: Lane, table: CharacteristicsTable, cursor: int | None, budget: int
    ) -> tuple[CharacteristicsTable, int | None]:
        """Spend a step's budget on the missing states, before the step's rows are seen; returns the new table and
        cursor."""
        end = self._spent(lane) + budget
        while self._spent(lane) < end and (entry := self.next(table)) is not None:
            cursor = self._pieces(lane, table, entry, cursor, end)
            if cursor is None:
                table = self._finish(lane, table, entry)
        return table, cursor

    def next(self, table: CharacteristicsTable) -> Entry | None:
        """Return the first entry, bottom-up, whose join has complete inputs."""
        ready = [e for e in table.entries if not any(other.join < e.join for other in table.entries)]
        return min(ready, key=lambda e: (len(e.join), sorted(e.join), sorted(e.old.items()))) if ready else None

    def gathering(self, entry: Entry) -> tuple[Operator, StateSpec]:
        """Return the state in which an entry's combinations gather, and the operator that makes them."""
        producer, spec = self._state(entry)
        return producer, replace(spec, signature=spec.signature.within(self.view))

    def _pieces(
        self, lane: Lane, table: CharacteristicsTable, entry: Entry, cursor: int | None, end: int
    ) -> int | None:
        # Returns the time down to which everything is found, None once the entry is done.
        join, _ = self._state(entry)
        assert isinstance(join, WindowJoin)
        sides = [_satisfying(lane.join(spec).old, entry) for spec in (join.left_state, join.right_state)]
        others = [e for e in table.entries if e.join == entry.join and e != entry]
        size = 1
        while self._spent(lane) < end:
            times = np.concatenate(
                [run.combinations.valid_from[EVENT_TIME] for side in sides for run in side] or [_NONE]
            )
            left = times if cursor is None else times[times < cursor]
            if not len(left):
                return None
            until = int(np.partition(left, -size)[-size]) if size < len(left) else int(left.min())
            before = self._spent(lane)
            self._piece(lane, join, sides, others, entry, cursor, until)
            # As large as the last one says that the rest of the budget allows.
            allowed = size * (end - self._spent(lane)) // max(self._spent(lane) - before, 1)
            cursor, size = until, max(1, min(allowed, GROWTH * size, MOST))
        return cursor

    def _piece(
        self,
        lane: Lane,
        join: WindowJoin,
        sides: list[list[SortedRun]],
        others: Sequence[Entry],
        entry: Entry,
        cursor: int | None,
        until: int,
    ) -> None:
        (fresh_left, done_left), (fresh_right, done_right) = (_split(side, cursor, until) for side in sides)
        pairs = [(a, b) for a in fresh_left for b in (*done_right, *fresh_right)]
        pairs += [(a, b) for a in done_left for b in fresh_right]
        found = [join.needed(lane, match(lane, join.rows, self.operator, join.on, a, b)) for a, b in pairs]
        found = [f.take(~np.any([e.satisfied(f) for e in others], axis=0)) if others else f for f in found]
        found = [f for f in found if len(f)]
        _, spec = self.gathering(entry)
        state = lane.join(spec) if lane.holds(spec) else JoinState(spec, [])
        if found:
            run = keyed(lane, join.rows, concatenate(found), spec.index, spec.key)
            state = JoinState(spec, [*state.old, run], state.purged, state.left_out)
        lane.put(state)

    def _finish(self, lane: Lane, table: CharacteristicsTable, entry: Entry) -> CharacteristicsTable:
        _, gathered = self.gathering(entry)
        _, spec = self._state(entry)
        if lane.holds(gathered):
            found, running = lane.join(gathered), lane.join(spec)
            lane.put(running.preceded_by(found))
            lane.put(JoinState(gathered, []))  # Another entry of the same join may be next.
        left = tuple(e for e in table.entries if e != entry)
        parent, sibling = self._above(entry)
        if parent == self.new.labels:
            return CharacteristicsTable(left)
        arrived = {label: lane.base(self.new.rows[label]).next_row for label in sorted(sibling)}
        return CharacteristicsTable((*left, Entry(parent, {**entry.old, **arrived})))

    def _state(self, entry: Entry) -> tuple[Operator, StateSpec]:
        for operator in self.new.walk():
            for producer, spec in operator.states() if operator.labels > entry.join else ():
                if producer.labels == entry.join:
                    return producer, spec
        raise KeyError(entry.join)

    def _above(self, entry: Entry) -> tuple[frozenset[str], frozenset[str]]:
        # The sources of the join above, and those of its other side.
        for operator in self.new.walk():
            if entry.join in {child.labels for child in operator.children()}:
                return operator.labels, operator.labels - entry.join
        raise KeyError(entry.join)

    def _spent(self, lane: Lane) -> int:
        return lane.counted(self.operator).comparisons


_NONE = np.zeros(0, np.int64)


def _satisfying(runs: Sequence[SortedRun], entry: Entry) -> list[SortedRun]:
    # An entry restricts only the sources that a run has.
    return [run for run in (_chosen(p, entry.satisfied(p.combinations)) for p in runs) if len(run)]


def _split(runs: Sequence[SortedRun], cursor: int | None, until: int) -> tuple[list[SortedRun], list[SortedRun]]:
    # The combinations of the next piece, and those before it.
    fresh, done = [], []
    for run in runs:
        times = run.combinations.valid_from[EVENT_TIME]
        before = np.zeros(len(times), np.bool_) if cursor is None else times >= cursor
        fresh.append(_chosen(run, (times >= until) & ~before))
        done.append(_chosen(run, before))
    return [p for p in fresh if len(p)], [p for p in done if len(p)]


def _chosen(run: SortedRun, mask: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> SortedRun:
    return run if mask.all() else run.take(mask)
