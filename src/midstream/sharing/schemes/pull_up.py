"""Selection pull-up: the join with the largest window, and a router (Wang §4.1).

Every row is kept for the widest window, whatever filters say; each result is compared with the window and the filter of
each query. The baseline, as [HFAE03] and [CDN02] have it.
"""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override

from midstream.sharing.schemes.scheme_contract import Figures, Scheme


class PullUp(Scheme):
    """One slice, and a router behind it."""

    name = "pull_up"
    delivery = "router"
    filtered = False

    @override
    def cuts(self, windows: Sequence[int], figures: Figures | None, present: Sequence[int]) -> tuple[int, ...]:
        return ()
