"""No sharing: every query runs by itself (Wang §4, Fig. 4.1)."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override

from midstream.sharing.schemes.scheme_contract import Figures, Scheme


class Isolated(Scheme):
    """A query that begins has a plan and states of its own; chains that are there already stay as they are, uncut."""

    name = "off"
    shares = False

    @override
    def cuts(self, windows: Sequence[int], figures: Figures | None, present: Sequence[int]) -> tuple[int, ...]:
        return ()
