"""Selection push-down: the streams are partitioned by the filters, one join for each pair of parts (Wang §4.2).

A part is the rows that pass the same filters; the join of two parts has the widest window among the queries that want
both, a router behind it, and an order-preserving union merges what the joins give. Each join keeps states of its own,
so rows of one part are held once for each part they meet.
"""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override

from midstream.sharing.schemes.base import Figures, Scheme


class PushDown(Scheme):
    """No slices; parts of the streams instead."""

    name = "push_down"
    delivery = "partition"

    @override
    def cuts(self, windows: Sequence[int], figures: Figures | None, present: Sequence[int]) -> tuple[int, ...]:
        return ()
