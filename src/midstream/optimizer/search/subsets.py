"""Sets of sources as bit masks, and what their joins do as arrays: the i-th source of a query is the bit 1 << i."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt

from midstream.optimizer.cost.sizes import Sizes
from midstream.optimizer.statistics import Condition, Sources

Masks = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]

MOST_ESTIMATED, SMALL = 130, 3
"""More sets than these are not estimated one by one, except for those of so few sources."""


@dataclass(frozen=True, eq=False)
class Subsets:
    """All sets of a query's sources, by mask, and what of them is joined without a needless cross product.

    A set is *joinable* if conditions tie its sources together, one to the next; where nothing ties some of a query's
    sources to the others, so are whole groups of tied sources together. A condition over more than two sources ties
    any two of them.
    """

    aliases: tuple[str, ...]
    conditions: tuple[Condition, ...]
    sizes: Sizes

    @property
    def count(self) -> int:
        """The number of sources."""
        return len(self.aliases)

    @property
    def full(self) -> int:
        """The mask of all sources."""
        return (1 << self.count) - 1

    def sources(self, mask: int) -> Sources:
        """Return the sources of a mask."""
        return frozenset(alias for i, alias in enumerate(self.aliases) if mask >> i & 1)

    def mask(self, sources: Iterable[str]) -> int:
        """Return the mask of some sources; those of other queries have no bit."""
        chosen = set(sources)
        return sum(1 << i for i, alias in enumerate(self.aliases) if alias in chosen)

    @cached_property
    def neighbours(self) -> tuple[int, ...]:
        """The mask of the sources that a condition ties each source to."""
        found = [0] * self.count
        for condition in self.conditions:
            tied = self.mask(condition.sources)
            for i in range(self.count):
                if tied >> i & 1:
                    found[i] |= tied & ~(1 << i)
        return tuple(found)

    @cached_property
    def components(self) -> tuple[int, ...]:
        """The greatest sets of sources that conditions tie together."""
        found, left = [], self.full
        while left:
            found.append(self.reached(left & -left, left))
            left &= ~found[-1]
        return tuple(found)

    def reached(self, start: int, within: int) -> int:
        """Find the sources `within` a set that conditions tie to `start`, directly or by way of others."""
        while True:
            grown = start
            for i, others in enumerate(self.neighbours):
                if start >> i & 1:
                    grown |= others & within
            if grown == start:
                return start
            start = grown

    def is_joinable(self, mask: int) -> bool:
        """Return whether a set is joined without a needless cross product."""
        whole = [component for component in self.components if component & mask]
        return self.reached(mask & -mask, mask) == mask or (
            len(whole) > 1 and all(component & mask == component for component in whole)
        )

    @cached_property
    def joinable(self) -> Truths:
        """`is_joinable` for every mask."""
        masks = np.arange(self.full + 1)
        reached, before = masks & -masks, np.full(self.full + 1, -1)
        while (reached != before).any():
            before = reached.copy()
            for i, others in enumerate(self.neighbours):
                reached |= np.where(reached >> i & 1, others, 0) & masks
        found = reached == masks
        if len(self.components) > 1:
            cut = [(masks & component != 0) & (masks & component != component) for component in self.components]
            found |= ~np.logical_or.reduce(cut)
        found[0] = False
        joinable: Truths = found
        return joinable

    @cached_property
    def rows(self) -> Numbers:
        """Rows alive in the join of each joinable set; nothing of the others.

        Where there are more than `MOST_ESTIMATED` sets only the small ones are estimated, and those that are counted.
        Of a greater one what two of its sources add to the others is taken to be independent:
        |S| = |S - a| |S - b| / |S - a - b|.
        """
        found = np.zeros(self.full + 1)
        masks = np.flatnonzero(self.joinable)
        many = len(masks) > MOST_ESTIMATED
        counted = {self.mask(sources) for sources in self.sizes.estimate.statistics.states}
        derived: list[Masks] = []
        for size in range(1, self.count + 1):
            level = masks[self.members[masks] == size]
            known = np.array([size <= SMALL or not many or int(mask) in counted for mask in level], bool)
            for mask in level[known]:
                found[mask] = self.sizes.rows(self.sources(int(mask)))
            derived.append(level[~known])
        for level in derived:
            if len(level):
                self._derive(found, level)
        return found

    def _derive(self, found: Numbers, masks: Masks) -> None:
        # A set that cannot be taken apart is estimated directly.
        left = np.ones(len(masks), bool)
        for i, j in combinations(range(self.count), 2):
            one, other = masks & ~(1 << i), masks & ~(1 << j)
            both = one & other
            apart = left & (one != masks) & (other != masks)
            apart &= self.joinable[one] & self.joinable[other] & self.joinable[both]
            least = np.maximum(found[both[apart]], 1e-300)
            found[masks[apart]] = found[one[apart]] * (found[other[apart]] / least)
            left &= ~apart
        for mask in masks[left]:
            found[mask] = self.sizes.rows(self.sources(int(mask)))

    @cached_property
    def renewal(self) -> Numbers:
        """The share of each set's combinations that is new in a second."""
        return self._sums([self.sizes.renewal[alias] for alias in self.aliases])

    @cached_property
    def members(self) -> Numbers:
        """The number of sources of each set."""
        return self._sums([1.0] * self.count)

    @cached_property
    def rates(self) -> Numbers:
        """Combinations that are made in a second, for each set."""
        return self.rows * self.renewal

    def examined(self, left: Masks, right: Masks) -> Numbers:
        """Compute the living pairs of two sides that the index lets through, for many joins: `Sizes.examined`."""
        pairs = self.rows[left] * self.rows[right]
        keyed, banded, residual = np.zeros(left.shape, bool), np.zeros(left.shape, bool), np.ones(left.shape)
        by_band = np.ones(left.shape)
        for condition in self.conditions:
            crosses = self._crosses(condition, left, right)
            if condition.kind == "hash":
                keyed |= crosses
                continue
            share = self.sizes.passing[condition]
            residual[crosses] *= share
            if condition.kind == "band":
                first = crosses & ~banded
                by_band[first] = share
                banded |= first
        # Where there is no key the first band is the index, and no condition beside it.
        passed = np.where(keyed, residual, residual / by_band)
        through = np.minimum(self.rows[left | right] / np.maximum(passed, 1e-300), pairs)
        return np.where(keyed | banded, through, pairs)

    def splits(self, masks: Masks) -> tuple[Masks, Masks]:
        """Enumerate all splits of sets of one size, a row each: the side with the first source and the other."""
        size = int(masks[0]).bit_count()
        bits = np.array([[1 << i for i in range(self.count) if mask >> i & 1] for mask in masks.tolist()], np.int64)
        chosen = (np.arange((1 << (size - 1)) - 1)[:, None] >> np.arange(size - 1)) & 1
        left = bits[:, :1] + bits[:, 1:] @ chosen.T
        return left, masks[:, None] - left

    def _crosses(self, condition: Condition, left: Masks, right: Masks) -> Truths:
        inside = self.mask(condition.sources)
        if condition.kind == "hash":
            tied: Truths = (left & inside != 0) & (right & inside != 0)
            return tied
        first: Truths = (inside & ~(left | right) == 0) & (inside & ~left != 0) & (inside & ~right != 0)
        return first

    def _sums(self, each: Sequence[float]) -> Numbers:
        found = np.zeros(1)
        for one in each:
            found = np.concatenate([found, found + one])
        return found
