"""CPU-Opt: the slices whose boundaries pay (Wang §7.2, §7.4.2, Fig. 7.3).

One more boundary costs a part more to probe and rows to hand on; one less costs a decision for each result of the
merged slice. The shortest path over the windows weighs them, with costs that were measured, and rates and selectivity
that the chain itself has counted. Where the dissertation's merged slices keep filtered rows too long, lineage does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from midstream.sharing.schemes.scheme_contract import Figures, Scheme

Window = TypeVar("Window", int, float)

Lengths = Callable[[int], npt.NDArray[np.float64]]
"""From a node's number i to the lengths of its edges to the nodes i + 1, ..., N, as an array."""


class CpuOpt(Scheme):
    """Cuts along the shortest path; at every window while nothing is known.

    >>> CpuOpt().cuts([10, 20, 60], None, ())
    (10, 20, 60)
    """

    name = "cpu_opt"

    @override
    def cuts(self, windows: Sequence[int], figures: Figures | None, present: Sequence[int]) -> tuple[int, ...]:
        if figures is None:
            return tuple(windows)
        return cheapest_cuts(windows, figures.lengths)


def cheapest_cuts(windows: Sequence[Window], lengths: Lengths) -> tuple[Window, ...]:
    """Find the ends of the slices of the cheapest chain, ascending; the last is the greatest window.

    Node 0 is age 0, node i the i-th window. An edge may be infinite: that slice is not to be. Of equally cheap chains
    it is one with the fewest slices. The dissertation names Dijkstra's algorithm; the graph has no cycles and its nodes
    are sorted, so one pass over the edges does, in O(N^2) and a vector operation per node.

    >>> cheapest_cuts([10, 20, 60], lambda i: np.array([[5, 8, 99], [4, 99], [6]][i]))
    (20, 60)
    """
    nodes = len(windows) + 1
    if (np.diff([0, *windows]) <= 0).any():
        raise ValueError(f"windows must be positive and ascend, not {list(windows)}")
    cost = np.full(nodes, np.inf)
    slices = np.zeros(nodes, np.int64)
    before = np.full(nodes, -1)
    cost[0] = 0.0
    for i in range(nodes - 1):
        found, ahead = cost[i] + lengths(i), slice(i + 1, nodes)
        fewer = (found == cost[ahead]) & (slices[i] + 1 < slices[ahead])
        better = (found < cost[ahead]) | fewer
        cost[ahead][better] = found[better]
        slices[ahead][better] = slices[i] + 1
        before[ahead][better] = i
    return tuple(windows[node - 1] for node in _path(before))


def _path(before: npt.NDArray[np.int64]) -> list[int]:
    path, node = [], len(before) - 1
    while node > 0:
        path.append(node)
        node = int(before[node])
    if node < 0:
        raise ValueError("no chain has a finite cost")
    return path[::-1]
