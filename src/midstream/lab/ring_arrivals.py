"""What comes to a ring on the virtual cluster: rows of several streams, and which of them match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.int64]

Row = tuple[int, int]
"""A row: its stream, and its number in the stream."""


@dataclass(frozen=True)
class RingArrivals:
    """What comes to a ring: for each stream ascending times in seconds, and which rows of neighbouring streams match.

    Streams are joined in a chain, and each row visits them outwards from its own, so that every pair compared decides
    by one predicate: `matches[i]` has rows of stream i down and of stream i + 1 across.
    """

    times: tuple[npt.NDArray[np.float64], ...]
    matches: tuple[npt.NDArray[np.bool_], ...]

    @staticmethod
    def drawn(ways: int, rate: float, selectivity: float, seconds: float, seed: int) -> RingArrivals:
        """Draw Poisson arrivals at `rate` rows a second in each stream, and predicates of this selectivity."""
        return RingArrivals.paced(ways, [(rate, seconds)], selectivity, seed)

    @staticmethod
    def paced(ways: int, paces: Sequence[tuple[float, float]], selectivity: float, seed: int) -> RingArrivals:
        """Draw arrivals at a changing rate: each pace is rows a second in each stream, and for how many seconds.

        >>> found = RingArrivals.paced(2, [(10, 1.0), (100, 1.0)], 0.5, seed=1)
        >>> [int((times < 1).sum()) < 30 < int((times > 1).sum()) for times in found.times]
        [True, True]
        """
        rng = np.random.default_rng(seed)
        begins = np.cumsum([0.0, *(seconds for _, seconds in paces)])
        times = tuple(
            np.concatenate(
                [
                    np.sort(rng.uniform(begin, begin + seconds, rng.poisson(rate * seconds)))
                    for begin, (rate, seconds) in zip(begins, paces, strict=False)
                ]
            )
            for _ in range(ways)
        )
        sizes = [len(found) for found in times]
        return RingArrivals(times, tuple(rng.random((a, b)) < selectivity for a, b in pairwise(sizes)))

    def later(self, seconds: float) -> RingArrivals:
        """Shift the rows in time."""
        return replace(self, times=tuple(times + seconds for times in self.times))

    def since(self, begin: float) -> list[tuple[float, int, int]]:
        """List the rows that come from `begin` on, in that order: when, of which stream, of which number."""
        return sorted(
            (time, stream, number)
            for stream, times in enumerate(self.times)
            for number, time in enumerate(times)
            if time >= begin
        )

    def processed(self, orders: Sequence[Words]) -> RingArrivals:
        """Number the rows of each stream as they are processed: the i-th is that of number `orders[...][i]`."""
        times = tuple(found[order] for found, order in zip(self.times, orders, strict=True))
        matches = tuple(
            found[np.ix_(down, across)] for found, (down, across) in zip(self.matches, pairwise(orders), strict=True)
        )
        return RingArrivals(times, matches)

    @property
    def ways(self) -> int:
        """The number of streams."""
        return len(self.times)

    def order(self, stream: int) -> list[tuple[int, int]]:
        """Return the probing order of a stream's rows: each stream visited, and the one whose row decides about a
        match."""
        after = [(other, other - 1) for other in range(stream + 1, self.ways)]
        return after + [(other, other + 1) for other in range(stream - 1, -1, -1)]

    def orders(self) -> list[list[int]]:
        """List the streams as the rows of each visit them, their own first."""
        return [[start, *(other for other, _ in self.order(start))] for start in range(self.ways)]

    def matching(self, row: Row, stream: int, low: int, high: int) -> Words:
        """Find the rows of a neighbouring stream, by number, that match a row."""
        of, number = row
        found = self.matches[of][number, low:high] if of < stream else self.matches[stream][low:high, number]
        return found.nonzero()[0] + low
