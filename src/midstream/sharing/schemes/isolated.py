"""No sharing: every query runs by itself (Wang §4, Fig. 4.1)."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override

from midstream.sharing.schemes.base import Figures, Scheme


class Isolated(Scheme):
    """Every query has a plan and states of its own; there is no chain to cut."""

    name = "off"

    @override
    def cuts(self, windows: Sequence[int], figures: Figures | None, present: Sequence[int]) -> tuple[int, ...]:
        return ()
