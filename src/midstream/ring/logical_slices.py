"""Many queries over one ring: which of them a row, or a partial result, still serves (Wang ch. 19, Lemma 9).

The queries join the same streams on the same conditions; windows and selections are their own. A stream's state is
sliced at every window; the slice that a row is old enough for says whose windows reach it, the row itself whose
selections let it pass. What serves no query is neither kept nor compared.

Differs from §19.2 in that a row takes part by its own selections, not by the disjunction of its slice's alone. By that
disjunction a partial result of one query still meets rows of another, and Theorem 13's least number of probes is not
reached: its proof takes the joined result to serve what both parts serve.

Results reach their queries by bitmaps instead of windows (Wang ch. 20: matrix O, vector T). A running ring routes by
`routed`. Its entries come from `LogicalSlices.serves`, which has for each slice what `entries` makes of matrix O,
whether or not windows are equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

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
            raise PlanError(
                "a window is missing or negative", place="windows", remedy="give each query a window of at least 0"
            )
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


Orders = npt.NDArray[np.uint8]
"""Matrix O as bitmaps: the i-th query by window (first axis) on a stream (second axis)."""


def query_orders(windows: Mapping[str, Sequence[int]]) -> Orders:
    """Build matrix O: for each stream the queries in the order of their windows, the shortest first, one bit each.

    >>> example = {"A": [30, 10, 20], "B": [10, 20, 30], "C": [20, 30, 10]}
    >>> [[f"{bits:03b}" for bits in row] for row in query_orders(example)[:, :, 0]]
    [['010', '001', '100'], ['100', '010', '001'], ['001', '100', '010']]
    """
    columns = [np.argsort(np.array(found), kind="stable") for found in windows.values()]
    count = len(columns[0])
    return np.stack([bitmaps(np.eye(count, dtype=np.bool_)[column]) for column in columns], axis=1)


def entries(orders: Orders, stream: int, slices: Words) -> Bitmaps:
    """Look up T_j for rows of a stream in these slices, counted from 0: all queries from there on (Lemma 9).

    Slices are one for each query here, as in §20.1; of equal windows all but the first are empty.

    >>> example = {"A": [30, 10, 20], "B": [10, 20, 30], "C": [20, 30, 10]}
    >>> orders = query_orders(example)
    >>> [f"{bits:03b}" for bits in (*entries(orders, 1, np.array([1]))[0], *entries(orders, 2, np.array([2]))[0])]
    ['110', '010']
    """
    from_here_on = np.bitwise_or.accumulate(orders[::-1, stream], axis=0)[::-1]
    return np.concatenate([from_here_on, np.zeros_like(from_here_on[:1])])[slices]


def routed(vector: Sequence[Bitmaps]) -> Bitmaps:
    """Intersect the entries of vector T: the queries that each result goes to.

    The entry of the row that came last is all ones; selections are entries like those of slices (§20.2).

    >>> vector = [np.array([[0b111]], np.uint8), np.array([[0b110]], np.uint8), np.array([[0b010]], np.uint8)]
    >>> f"{routed(vector)[0, 0]:03b}"
    '010'
    """
    return reduce(np.bitwise_and, vector)
