"""Mem-Opt: a slice for each distinct window (Wang §7.1, §7.4.1).

With filters pushed between the slices as disjunctions the chain keeps the least state that can give all answers
(Theorems 5 and 6). Here it is the rows' lineage that lets none live too long, wherever the cuts are; so the least state
is that of every scheme with lineage, and what the cuts decide is how much work slices and routes are.
"""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override

from midstream.sharing.schemes.scheme_contract import Figures, Scheme


class MemOpt(Scheme):
    """Cuts at every window.

    >>> MemOpt().cuts([10, 20, 60], None, ())
    (10, 20, 60)
    """

    name = "mem_opt"

    @override
    def cuts(self, windows: Sequence[int], figures: Figures | None, present: Sequence[int]) -> tuple[int, ...]:
        return tuple(windows)
