"""The chain moves between Mem-Opt and CPU-Opt as the statistics say (Wang §7.3)."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override

from midstream.sharing.schemes.cpu_opt import CpuOpt
from midstream.sharing.schemes.mem_opt import MemOpt
from midstream.sharing.schemes.scheme_contract import Figures, Scheme

WORTH_IT = 0.1
"""The share of its cost by which another chain must be cheaper than the present one."""


class Auto(Scheme):
    """Begins with Mem-Opt; moves to the cheapest chain when that is cheaper by `WORTH_IT`, and so back again."""

    name = "auto"

    @override
    def cuts(self, windows: Sequence[int], figures: Figures | None, present: Sequence[int]) -> tuple[int, ...]:
        if figures is None:
            return MemOpt().cuts(windows, figures, present)
        standing = tuple(cut for cut in present if cut in set(windows)) or tuple(windows)
        if standing[-1] != windows[-1]:
            standing = (*standing, windows[-1])
        best = CpuOpt().cuts(windows, figures, present)
        return best if figures.cost(best) < (1 - WORTH_IT) * figures.cost(standing) else standing
