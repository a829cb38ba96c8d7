"""The characteristics table (HybMig §3.3, Fig. 9 and Table 2): what a new plan with missing states cannot make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from midstream.migration.under_way.migration_task import BegunTask
from midstream.migration.under_way.transition import restricted
from midstream.operators.match import keyed
from midstream.operators.window_join import WindowJoin
from midstream.plan.decompose import Sources
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator
from midstream.state.combinations import Combinations, Words


@dataclass(frozen=True)
class Entry:
    """What the state of a join lacks: the combinations whose rows of certain sources are all old.

    `old` has for these sources the number below which a row counts as old.
    """

    join: Sources
    old: Mapping[str, int]

    def satisfied(self, combinations: Combinations) -> npt.NDArray[np.bool_]:
        """Test which combinations satisfy the entry, as far as their sources can decide it."""
        kept = np.ones(len(combinations), np.bool_)
        for label in self.old.keys() & combinations.refs.keys():
            kept &= combinations.refs[label] < self.old[label]
        return kept


@dataclass(frozen=True)
class CharacteristicsTable:
    """A result is the old plan's if it satisfies an entry, and the new plan's otherwise.

    The paper has an entry for each lowest join of the new plan, "both components old", with one time for all. Here each
    source of an entry has its own bound, so that the entry of a join which was completed later can say what that join's
    parent still lacks.

    >>> entries = Entry(frozenset("AB"), {"A": 10, "B": 20}), Entry(frozenset("CD"), {"C": 5, "D": 5})
    >>> table = CharacteristicsTable(entries)
    >>> one = np.array([3]), np.array([25])
    >>> table.contradicted(Combinations({"A": one[0], "B": one[1]}, {}, {})).tolist(), table.full
    ([1], 3)
    """

    entries: tuple[Entry, ...]

    @staticmethod
    def of(whole: Operator, task: BegunTask) -> CharacteristicsTable:
        """Build the table with which a migration begins: an entry for each lowest join of the new plan, except its
        root."""
        found = [pair for pair in lowest(whole, task.units) if pair != task.sources]
        return CharacteristicsTable(tuple(Entry(p, {label: task.start[label] for label in sorted(p)}) for p in found))

    @property
    def full(self) -> int:
        """The bitmap of a combination that contradicts every entry."""
        return (1 << len(self.entries)) - 1

    def contradicted(self, combinations: Combinations) -> Words:
        """Compute for each combination the bitmap of entries it contradicts: a row of an entry's sources is new."""
        bits = np.zeros(len(combinations), np.int64)
        for at, entry in enumerate(self.entries):
            bits |= (~entry.satisfied(combinations)).astype(np.int64) << at
        return bits

    def satisfying(self, combinations: Combinations) -> Combinations:
        """Select the combinations that satisfy an entry, as far as their sources can decide it."""
        satisfied = self.contradicted(combinations) != self.full
        return combinations if satisfied.all() else combinations.take(satisfied)

    def disconnected(self) -> frozenset[str]:
        """Return the sources whose new rows contradict every entry: the old plan no longer needs them (Fig. 7)."""
        every = [frozenset(entry.old) for entry in self.entries]
        return frozenset.intersection(*every) if every else frozenset()

    def serve(self, old: Operator, lane: Lane, masked: frozenset[Sources]) -> Combinations:
        """Compute the step's results that the old plan still has to make.

        Joins over the `masked` sources leave out what satisfies no entry, from the first probe on; other operators run
        as they are, and only their output is sorted out.
        """
        if old.labels not in masked or not isinstance(old, WindowJoin):
            return self.satisfying(old.drive(lane))
        left = self.serve(old.left, lane, masked)
        right = self.serve(old.right, lane, masked)
        found = restricted(lane, old, (left, right), (self.contradicted, self.contradicted), self.full)
        for child, spec, key, served in (
            (old.left, old.left_state, old.on.left_key, left),
            (old.right, old.right_state, old.on.right_key, right),
        ):
            # States that the plans share hold everything.
            delta = served if spec.signature.view else child.delta(lane)
            lane.join(spec).insert(keyed(lane, old.rows, delta, old.on.index, key))
        return found


def lowest(operator: Operator, units: frozenset[Sources]) -> list[Sources]:
    """List the joins both of whose inputs are units."""
    if not isinstance(operator, WindowJoin) or operator.labels in units:
        return []
    if all(child.labels in units for child in operator.children()):
        return [operator.labels]
    return [found for child in operator.children() for found in lowest(child, units)]
