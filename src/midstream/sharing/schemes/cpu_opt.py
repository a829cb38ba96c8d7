"""CPU-Opt: the slices whose boundaries pay (Wang §7.2, §7.4.2, Fig. 7.3).

One more boundary costs a part more to probe and rows to hand on; one less costs a decision for each result of the
merged slice. The shortest path over the windows weighs them, with costs that were measured, and rates and selectivity
that the chain itself has counted. Where the dissertation's merged slices keep filtered rows too long, lineage does not.
"""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override

from midstream.sharing.schemes.base import Figures, Scheme
from midstream.sharing.shortest_path import cheapest_cuts


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
