"""Selection push-down: the streams are partitioned by the filters, one join for each pair of partitions (Wang §4.2).

A partition is the rows that pass the same filters; the join of two partitions has the widest window among the queries
that read both, a router behind it, and an order-preserving union merges what the joins give. Each join keeps states of
its own, so rows of one partition are kept once for each partition they are joined with.
"""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override

from midstream.sharing.schemes.scheme_contract import Figures, Scheme


class PushDown(Scheme):
    """No slices; partitions of the streams instead."""

    name = "push_down"
    delivery = "partition"

    @override
    def cuts(self, windows: Sequence[int], figures: Figures | None, present: Sequence[int]) -> tuple[int, ...]:
        return ()
