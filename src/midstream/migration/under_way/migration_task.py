"""The tasks of a migration, as they begin and as a manifest remembers them (HybMig §3.1, Fig. 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from midstream.model.window import EVENT_TIME, FOREVER, Clock
from midstream.plan.decompose import Sources, Task
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator
from midstream.runtime.watermark import BEGINNING
from midstream.state.specs import RowsSpec


@dataclass(frozen=True)
class BegunTask(Task):
    """A task of a migration under way.

    A row of a source is old if its number is less than the source's `start`: it arrived before the migration. `ends`
    has for each source and clock the last end of lifetime of an old row; a source without old rows has none. `since` is
    the event time that had passed when it began; `memory` is what the strategy must remember, as JSON values.
    """

    start: Mapping[str, int] = field(default_factory=dict)
    ends: Mapping[str, Mapping[Clock, int]] = field(default_factory=dict)
    since: int = 0
    memory: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def begun(task: Task, lane: Lane, root: Operator) -> BegunTask:
        """Begin a task with this step: what has arrived so far is old."""
        labels = sorted(task.sources)
        start = {label: lane.base(root.rows[label]).next_row for label in labels}
        ends = {label: _ends(lane, root.rows[label], start[label]) for label in labels}
        begun = BegunTask(task.sources, task.units, start, ends)
        return replace(begun, since=begun.passed(lane, root))

    def reckoned(self, lane: Lane, root: Operator) -> BegunTask:
        """Recompute when old rows end, for sources whose lifetimes have changed."""
        changed = [label for label in self.ends if lane.base(root.rows[label]).relived]
        ends = {label: _ends(lane, root.rows[label], self.start[label]) for label in changed}
        return replace(self, ends={**self.ends, **ends}) if changed else self

    def passed(self, lane: Lane, root: Operator) -> int:
        """Return the event time up to which no row may still come."""
        return min(lane.bounds(root.rows[label].id).get(EVENT_TIME, BEGINNING) for label in self.sources)

    def progress(self, lane: Lane, root: Operator) -> float:
        """Return the share of the old rows' lifetime that has passed, from 0 to 1."""
        last, passed = self.last, self.passed(lane, root)
        if last is None or last <= self.since or self.since == BEGINNING:
            return 0.0
        return min(max((passed - self.since) / (last - self.since), 0.0), 1.0)

    def is_spent(self, lane: Lane, root: Operator, longer: int = 0) -> bool:
        """Return whether no later row can join an old one; waits `longer` microseconds beyond that."""
        return all(self.source_is_spent(label, lane, root, longer) for label in self.ends)

    def source_is_spent(self, label: str, lane: Lane, root: Operator, longer: int = 0) -> bool:
        """Return whether no later row can join an old row of one source; waits `longer` microseconds beyond that."""
        bounds, ends = lane.bounds(root.rows[label].id), self.ends[label]
        waits = {c: end + (longer if c == EVENT_TIME and end < FOREVER - longer else 0) for c, end in ends.items()}
        return not ends or any(bounds[clock] > end for clock, end in waits.items() if clock in bounds)

    @property
    def last(self) -> int | None:
        """The event time up to which an old row lives; None if no time bounds it."""
        ends = [clocks[EVENT_TIME] for clocks in self.ends.values() if clocks]
        return max(ends) if ends and max(ends) < FOREVER else None


def _ends(lane: Lane, rows: RowsSpec, start: int) -> dict[Clock, int]:
    # The last end of lifetime by clock, of living rows below `start`; empty if there are none.
    pieces = [p.take(p.refs[rows.label] < start) for p in lane.base(rows).alive(lane.bounds(rows.id))]
    return {c: max(int(p.valid_to[c].max()) for p in pieces if len(p)) for c in rows.clocks if any(map(len, pieces))}


def nodes(root: Operator) -> dict[Sources, Operator]:
    """Map the operators of a plan by their sources, without those inside a migration under way."""
    found: dict[Sources, Operator] = {}
    for child in root.inputs():
        found.update(nodes(child))
    return {**found, root.labels: root}
