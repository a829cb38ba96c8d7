"""The pieces of a migration, as they begin and as a manifest remembers them (HybMig §3.1, Fig. 5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from midstream.model.window import EVENT_TIME, FOREVER
from midstream.operators.window_join import WindowJoin
from midstream.runtime.lane import BEGINNING, Lane
from midstream.runtime.operator import Operator

Sources = frozenset[str]


@dataclass(frozen=True)
class Task:
    """An old and a new subplan over the same sources, each of whose `units` is one stream to both.

    A row of a source is old if its number is less than the source's `start`: it arrived before the migration. `ends`
    has for each source and clock the last end of lifetime of an old row; a source without old rows has none. `since` is
    the event time that had passed when it began; `memory` is what the strategy must remember, as JSON values.
    """

    sources: Sources
    units: frozenset[Sources]
    start: Mapping[str, int] = field(default_factory=dict)
    ends: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    since: int = 0
    memory: Mapping[str, Any] = field(default_factory=dict)

    def begun(self, lane: Lane, root: Operator) -> Task:
        """The task as it begins with this step: what arrived so far is old."""
        start, ends = {}, {}
        for label in sorted(self.sources):
            spec = root.rows[label]
            base = lane.base(spec)
            start[label] = base.next_row
            pieces = base.alive(lane.bounds(spec.id))
            ends[label] = {c: max(int(p.valid_to[c].max()) for p in pieces) for c in spec.clocks} if pieces else {}
        return replace(self, start=start, ends=ends, since=self.passed(lane, root))

    def passed(self, lane: Lane, root: Operator) -> int:
        """The event time up to which no row may still come."""
        return min(lane.bounds(root.rows[label].id).get(EVENT_TIME, BEGINNING) for label in self.sources)

    def progress(self, lane: Lane, root: Operator) -> float:
        """How much of the time that old rows live has passed, from 0 to 1."""
        last, passed = self.last, self.passed(lane, root)
        if last is None or last <= self.since or self.since == BEGINNING:
            return 0.0
        return min(max((passed - self.since) / (last - self.since), 0.0), 1.0)

    def is_spent(self, lane: Lane, root: Operator, longer: int = 0) -> bool:
        """Whether no row that may still come can join an old one; `longer` microseconds are waited beyond that."""
        return all(self.source_is_spent(label, lane, root, longer) for label in self.ends)

    def source_is_spent(self, label: str, lane: Lane, root: Operator, longer: int = 0) -> bool:
        """The same for the old rows of one source."""
        bounds, ends = lane.bounds(root.rows[label].id), self.ends[label]
        waits = {c: end + (longer if c == EVENT_TIME and end < FOREVER - longer else 0) for c, end in ends.items()}
        return not ends or any(bounds[clock] > end for clock, end in waits.items() if clock in bounds)

    @property
    def last(self) -> int | None:
        """The event time up to which an old row lives; None where only counts or nothing say."""
        ends = [clocks[EVENT_TIME] for clocks in self.ends.values() if clocks]
        return max(ends) if ends and max(ends) < FOREVER else None

    def to_json(self) -> dict[str, Any]:
        """The task as JSON values."""
        return {
            "sources": sorted(self.sources),
            "units": sorted(sorted(unit) for unit in self.units),
            "start": dict(self.start),
            "ends": {label: dict(ends) for label, ends in self.ends.items()},
            "since": self.since,
            "memory": dict(self.memory),
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Task:
        """The task that `to_json` wrote."""
        units = frozenset(frozenset(unit) for unit in value["units"])
        return Task(frozenset(value["sources"]), units, value["start"], value["ends"], value["since"], value["memory"])


def nodes(root: Operator) -> dict[Sources, Operator]:
    """The operators of a plan by their sources; what a migration under way does inside is not seen."""
    found: dict[Sources, Operator] = {}
    for child in root.inputs():
        found.update(nodes(child))
    return {**found, root.labels: root}


def carve(old: Operator, new: Operator, *, decompose: bool = True) -> list[Task]:
    """Split a migration at common subplans, bottom-up; pieces whose old and new form are the same are left out.

    Without `decompose` only the sources are common, and there is one piece at most.
    """
    before, after = nodes(old), nodes(new)
    common = {sources for sources in before.keys() & after.keys() if decompose or len(sources) == 1} | {new.labels}
    tasks = []
    for sources in sorted(common, key=lambda s: (len(s), sorted(s))):
        below = common - {sources}
        if len(sources) > 1 and form(before[sources], below) != form(after[sources], below):
            tasks.append(Task(sources, frozenset(units_of(after[sources], below))))
    return tasks


def units_of(operator: Operator, common: Iterable[Sources]) -> set[Sources]:
    """The greatest common subplans below an operator."""
    found: set[Sources] = set()
    for child in operator.inputs():
        found |= {child.labels} if child.labels in common else units_of(child, common)
    return found


def form(operator: Operator, common: Iterable[Sources]) -> object:
    """What tells plans apart: nested sets for join trees, down to the common subplans; sides are not told apart."""
    target = operator.target()
    if not isinstance(target, WindowJoin):
        return target.describe()
    sides = [c.labels if c.labels in common else form(c, common) for c in target.children()]
    return type(target).__name__, frozenset(sides)
