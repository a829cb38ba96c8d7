"""Many queries over one ring: which of them a row, or a partial result, still serves (Wang ch. 19, Lemma 9).

The queries join the same streams on the same conditions; windows and selections are their own. A stream's state is
sliced at every window; the slice that a row is old enough for says whose windows reach it, the row itself whose
selections let it pass. What serves no query is neither kept nor compared.

Differs from §19.2 in that a row takes part by its own selections, not by the disjunction of its slice's alone. By that
disjunction a partial result of one query still meets rows of another, and Theorem 13's least number of probes is not
reached: its proof takes the joined result to serve what both parts serve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from midstream.model.errors import PlanError
from midstream.ring.columns import Words

Bitmaps = npt.NDArray[np.uint8]
"""A row of bytes for each thing, in which bit i is the i-th query's."""


def bitmaps(served: npt.NDArray[np.bool_]) -> Bitmaps:
    """Pack which thing (down) serves which query (across) into bitmaps."""
    return np.packbits(served, axis=1, bitorder="little")


def queries(found: Bitmaps, count: int) -> npt.NDArray[np.bool_]:
    """Unpack which thing (down) serves which of `count` queries (across): the inverse of `bitmaps`."""
    return np.unpackbits(found, axis=1, count=count, bitorder="little").astype(np.bool_)


def serving(found: Bitmaps) -> npt.NDArray[np.bool_]:
    """Test which bitmaps serve any query at all; the others are dropped (Lemma 9).

    >>> serving(bitmaps(np.array([[False, True], [False, False]]))).tolist()
    [True, False]
    """
    bits: npt.NDArray[np.bool_] = np.logical_or.reduce(found, axis=1)
    return bits


@dataclass(frozen=True)
class LogicalSlices:
    """The slices of a stream's state: the ages at which they end, inclusive, and the queries that each serves.

    `serves` has one row more than there are slices: what is older than every window serves none.
    """

    ends: Words
    serves: Bitmaps

    @staticmethod
    def by_windows(windows: Sequence[int]) -> LogicalSlices:
        """Cut slices at the queries' windows on a stream: slice i serves those whose windows end no sooner.

        >>> LogicalSlices.by_windows([30, 10, 20]).ends.tolist()
        [10, 20, 30]
        """
        if not windows or min(windows) < 0:
            raise PlanError("windows of no length", place="windows", remedy="name one for each query, 0 or longer")
        ends = np.unique(np.array(windows, np.int64))
        return LogicalSlices(ends, bitmaps(np.array(windows) >= np.append(ends, max(windows) + 1)[:, None]))

    def place(self, ages: Words) -> Words:
        """Find the slice of rows of these ages; rows older than every window have the number after the last."""
        found: Words = np.searchsorted(self.ends, ages, "left")
        return found

    def reached(self, ages: Words) -> Bitmaps:
        """Return the queries whose windows reach rows of these ages."""
        return self.serves[self.place(ages)]

    def kept(self, ages: Words, passed: Bitmaps) -> npt.NDArray[np.bool_]:
        """Test which rows are kept, of those whose selections pass them: the least state (Theorem 12).

        >>> slices = LogicalSlices.by_windows([10, 20])
        >>> first, second = bitmaps(np.array([[True, False], [False, True]]))
        >>> slices.kept(np.array([5, 15, 15]), np.stack([first, first, second])).tolist()
        [True, False, True]
        """
        return serving(self.reached(ages) & passed)

    def compared(self, partials: Bitmaps, ages: Words, passed: Bitmaps) -> npt.NDArray[np.bool_]:
        """Test which partial results (down) are compared with which rows (across): the fewest (Theorem 13)."""
        common = partials[:, None, :] & (self.reached(ages) & passed)[None, :, :]
        bits: npt.NDArray[np.bool_] = np.logical_or.reduce(common, axis=2)
        return bits
