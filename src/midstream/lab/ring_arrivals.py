"""What comes to a ring on the virtual cluster: rows of several streams, and which of them match."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

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
        """Poisson arrivals, so many a second in each stream, and predicates that hold with this probability."""
        rng = np.random.default_rng(seed)
        times = tuple(np.sort(rng.uniform(0, seconds, rng.poisson(rate * seconds))) for _ in range(ways))
        sizes = [len(found) for found in times]
        return RingArrivals(times, tuple(rng.random((a, b)) < selectivity for a, b in pairwise(sizes)))

    @property
    def ways(self) -> int:
        """How many streams there are."""
        return len(self.times)

    def order(self, stream: int) -> list[tuple[int, int]]:
        """The probing order of a stream's rows: each stream visited, and the one whose row decides about a match."""
        after = [(other, other - 1) for other in range(stream + 1, self.ways)]
        return after + [(other, other + 1) for other in range(stream - 1, -1, -1)]

    def matching(self, row: Row, stream: int, low: int, high: int) -> npt.NDArray[np.int64]:
        """Which rows of a neighbouring stream, by number, match a row."""
        of, number = row
        found = self.matches[of][number, low:high] if of < stream else self.matches[stream][low:high, number]
        return np.flatnonzero(found) + low
