"""What is spread, and where it goes: rows and partial results as columns, and the nodes found for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.int64]

EARLIEST, LATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
"""Bounds of event times that leave nothing out."""


@dataclass(frozen=True)
class StreamRows:
    """Rows of one source: event times in microseconds, and for each key class that the source has the codes of its key.

    What the code of a NULL is does not matter: the row meets nothing by that key.
    """

    ts: Words
    keys: Mapping[str, Words]

    def __len__(self) -> int:
        return len(self.ts)


@dataclass(frozen=True)
class Partials:
    """Partial results: one row of each of some sources, within their windows.

    `ts` has the event time of each component by source label, `keys` the codes of the key classes that any component
    has. `moment` is the event time at which the row came that began the partial result: where several are on their way
    at once, slices lie for each as they lay then.
    """

    ts: Mapping[str, Words]
    keys: Mapping[str, Words]
    moment: Words

    def __len__(self) -> int:
        return len(self.moment)


@dataclass(frozen=True)
class Copies:
    """Where rows are kept: row `row[i]`, by its place among the rows, at node `node[i]`; no pair twice."""

    row: Words
    node: Words

    @staticmethod
    def single(node: Words) -> Copies:
        """Place one copy of each row, the i-th at `node[i]`."""
        return Copies(np.arange(len(node)), node)

    @staticmethod
    def distinct(row: Words, node: Words, nodes: int) -> Copies:
        """Collect these copies, each pair once.

        >>> import numpy as np
        >>> found = Copies.distinct(np.array([0, 0, 1]), np.array([2, 2, 0]), nodes=3)
        >>> found.row.tolist(), found.node.tolist()
        ([0, 1], [2, 0])
        """
        pairs = np.unique(row * nodes + node)
        return Copies(pairs // nodes, pairs % nodes)

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True)
class Visits:
    """Where partial results look: partial `partial[i]` at node `node[i]` meets rows there from `low[i]` to `high[i]`.

    The bounds are event times, both inclusive. A partial may visit a node twice, with bounds that do not overlap.
    """

    partial: Words
    node: Words
    low: Words
    high: Words

    @staticmethod
    def within(joinable: tuple[Words, Words], partial: Words, node: Words, bounds: tuple[Words, Words]) -> Visits:
        """Restrict visits of parts of a stream to what each partial may join, without those that meet nothing.

        >>> import numpy as np
        >>> every, parts = np.array([0, 0, 0]), (np.array([0, 10, 20]), np.array([9, 19, 29]))
        >>> found = Visits.within((np.array([5]), np.array([15])), every, np.array([3, 1, 2]), parts)
        >>> found.node.tolist(), found.low.tolist(), found.high.tolist()
        ([3, 1], [5, 10], [9, 15])
        """
        low, high = np.maximum(bounds[0], joinable[0][partial]), np.minimum(bounds[1], joinable[1][partial])
        return Visits(partial, node, low, high).not_in_vain()

    @staticmethod
    def together(many: Sequence[Visits]) -> Visits:
        """Concatenate visits; there is one at least."""
        columns = ([getattr(one, each.name) for one in many] for each in fields(Visits))
        return Visits(*(np.concatenate(column) for column in columns))

    def not_in_vain(self) -> Visits:
        """Select the visits whose bounds have a time between them."""
        met = self.low <= self.high
        return self if met.all() else self.where(met)

    def where(self, kept: npt.NDArray[np.bool_]) -> Visits:
        """Select the visits that are marked."""
        return Visits(self.partial[kept], self.node[kept], self.low[kept], self.high[kept])

    def __len__(self) -> int:
        return len(self.partial)


def present(nodes: Words) -> Words:
    """List the nodes that occur, each once, ascending; without the sort of `np.unique`.

    >>> present(np.array([3, 0, 3])).tolist()
    [0, 3]
    """
    return np.flatnonzero(np.bincount(nodes))


def expanded(first: Words, last: Words) -> tuple[Words, Words]:
    """Enumerate the whole numbers from `first[i]` to `last[i]` for every i: the i of each, and the number.

    >>> import numpy as np
    >>> [found.tolist() for found in expanded(np.array([3, 9, 7]), np.array([4, 5, 7]))]
    [[0, 0, 2], [3, 4, 7]]
    """
    counts = np.maximum(last - first + 1, 0)
    origin = np.repeat(np.arange(len(counts)), counts)
    begin = np.cumsum(counts) - counts
    return origin, np.arange(len(origin)) + np.repeat(first - begin, counts)
