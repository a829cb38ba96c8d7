"""The cheapest bushy trees, exactly: dynamic programming over the sets of sources that conditions tie together.

OM §4.2 looks for left-deep trees by local search; here, up to `MOST_SOURCES`, all shapes are weighed, level by level
as in System R, each level as arrays. Only the cheapest tree of each set is kept; the next ones are then found by going
down again, only where they are asked for (Huang and Chiang, Better k-best Parsing, 2005, Algorithm 3).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from math import isfinite

import numpy as np
import numpy.typing as npt

from midstream.optimizer.cost.plan_cost import CostModel
from midstream.optimizer.search.subsets import Masks, Numbers, Subsets
from midstream.optimizer.statistics import Sources
from midstream.plan.tree import Join, Leaf, Plan

MOST_SOURCES = 12  # of more sources there are too many sets to weigh them all
FEW_SOURCES = 8  # of so many sources the trees are found in one step, however small that is, and weighed in the next


def cheapest_trees(
    subsets: Subsets, cost: CostModel, count: int, kept: frozenset[Sources] = frozenset()
) -> list[tuple[float, Plan]]:
    """Find the `count` cheapest bushy trees without needless cross products, with their values.

    The cheapest comes first; ties are in a fixed order.
    """
    return [*islice(_Forest(subsets, cost, kept).trees(subsets.full), count)]


_Candidate = tuple[float, int, int, int]
"""A split of a set: its value, its left side, and the so-many-th tree of either side."""


@dataclass
class _Forest:
    """The trees of every set: the value of the cheapest of each, others as they are looked for."""

    subsets: Subsets
    cost: CostModel
    kept: frozenset[Sources]
    _found: dict[int, list[tuple[float, Plan]]] = field(default_factory=dict)
    _open: dict[int, list[_Candidate]] = field(default_factory=dict)
    _met: dict[int, set[tuple[int, int, int]]] = field(default_factory=dict)
    _join_of: dict[int, dict[int, float]] = field(default_factory=dict)
    """What the join of each split costs, by its left side, of the sets that were begun."""

    _levels: dict[int, tuple[Masks, Masks, Numbers]] = field(default_factory=dict)
    """By size the sets, a row each of their left sides, and what these joins cost: infinite where not joinable."""

    def __post_init__(self) -> None:
        subsets = self.subsets
        self._free: npt.NDArray[np.bool_] = np.zeros(subsets.full + 1, bool)
        for sources in self.kept:
            if sources <= set(subsets.aliases):
                self._free[subsets.mask(sources)] = True
        self._best: Numbers = np.full(subsets.full + 1, np.inf)
        units, weights = self.cost.units, self.cost.weights
        for i in range(subsets.count):
            work = units.insert * subsets.rates[1 << i]
            memory = units.bytes_of(subsets.rows[1 << i], 1.0)
            self._best[1 << i] = 0.0 if self._free[1 << i] else weights.value(float(work), float(memory))
        by_size = subsets.members.astype(int)
        for size in range(2, subsets.count + 1):
            masks = np.flatnonzero((by_size == size) & subsets.joinable)
            if len(masks):
                left, right = subsets.splits(masks)
                joins = self._joins(left, right)
                values = self._best[left] + self._best[right] + joins
                self._best[masks] = np.where(self._free[masks], 0.0, values.min(axis=1))
                self._levels[size] = masks, left, joins

    def trees(self, mask: int) -> Iterator[tuple[float, Plan]]:
        """Enumerate the trees of a set with their values, the cheapest first."""
        place = 0
        while (tree := self._tree(mask, place)) is not None:
            yield tree
            place += 1

    def _joins(self, left: Masks, right: Masks) -> Numbers:
        possible = self.subsets.joinable[left] & self.subsets.joinable[right]
        joins: Numbers = np.full(left.shape, np.inf)
        joins[possible] = self._joining(left[possible], right[possible])
        return joins

    def _joining(self, left: Masks, right: Masks) -> Numbers:
        subsets, units = self.subsets, self.cost.units
        together = left | right
        inner = together != subsets.full
        results = subsets.rates[together]
        compared = subsets.examined(left, right) * subsets.renewal[together]
        work = units.joining(subsets.rates[left] + subsets.rates[right], compared, results)
        work = work + units.operator_step * subsets.sizes.steps + units.insert * results * inner
        memory = units.bytes_of(subsets.rows[together], subsets.members[together]) * inner
        return self.cost.weights.value(work, memory)

    def _tree(self, mask: int, place: int) -> tuple[float, Plan] | None:
        if mask.bit_count() == 1:
            return (float(self._best[mask]), Leaf(*self.subsets.sources(mask))) if place == 0 else None
        if mask not in self._found:
            self._begin(mask)
        found, waiting = self._found[mask], self._open[mask]
        # A tree that another query runs already is taken as it is: others would not be free.
        while len(found) <= place and waiting and not (self._free[mask] and found):
            value, left, place_left, place_right = heapq.heappop(waiting)
            one, other = self._tree(left, place_left), self._tree(mask ^ left, place_right)
            assert one is not None and other is not None
            found.append((0.0 if self._free[mask] else value, Join(one[1], other[1])))
            self._offer(mask, left, place_left + 1, place_right)
            self._offer(mask, left, place_left, place_right + 1)
        return found[place] if place < len(found) else None

    def _begin(self, mask: int) -> None:
        masks, lefts, costs = self._levels[mask.bit_count()]
        at = int(np.searchsorted(masks, mask))
        left, joins = lefts[at], costs[at]
        values = self._best[left] + self._best[mask ^ left] + joins
        candidates = [
            (value, at, 0, 0) for value, at in zip(values.tolist(), left.tolist(), strict=True) if isfinite(value)
        ]
        heapq.heapify(candidates)
        self._found[mask], self._open[mask] = [], candidates
        self._met[mask] = {candidate[1:] for candidate in candidates}
        self._join_of[mask] = dict(zip(left.tolist(), joins.tolist(), strict=True))

    def _offer(self, mask: int, left: int, place_left: int, place_right: int) -> None:
        if (left, place_left, place_right) in self._met[mask]:
            return
        self._met[mask].add((left, place_left, place_right))
        one, other = self._tree(left, place_left), self._tree(mask ^ left, place_right)
        if one is not None and other is not None:
            value = one[0] + other[0] + self._join_of[mask][left]
            heapq.heappush(self._open[mask], (value, left, place_left, place_right))
