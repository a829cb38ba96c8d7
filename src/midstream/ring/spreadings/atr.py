"""ATR, aligned tuple routing: the master's segments go round the nodes, and what may join them is copied there.

[GYW07] as Wang §15.1 has it: a slave's segment is wider by the window at both ends, so that every node joins by itself,
and a row of a slave is kept 1 + 2W/T times on average.

Differs in that a slave's row visits the master first. There all nodes that hold it join it in any order, and make the
same partial results several times over, of which those without a row of the master's own segment come to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from typing_extensions import override

from midstream.model.errors import PlanError
from midstream.ring.columns import Copies, Partials, StreamRows, Visits, expanded
from midstream.ring.deployment import Deployment, check_segment, segment_bounds
from midstream.ring.spreading import Spreading


class Atr(Spreading):
    """Home by segment, for slaves by every widened one; visits to the node of the master's row, or any that joins."""

    name = "atr"
    stays = True
    options = ("master", "segment")

    @override
    def home(self, deployment: Deployment, label: str, rows: StreamRows) -> Copies:
        length, master = deployment.segment, deployment.master
        if label == master:
            return Copies.single(rows.ts // length % deployment.nodes)
        first = (rows.ts - deployment.windows[master]) // length
        row, segment = expanded(first, (rows.ts + deployment.windows[label]) // length)
        return Copies.distinct(row, segment % deployment.nodes, deployment.nodes)

    @override
    def visit(self, deployment: Deployment, partials: Partials, label: str) -> Visits:
        length, master = deployment.segment, deployment.master
        low, high = joinable = deployment.joinable(partials, label)
        if label != master:
            return Visits(np.arange(len(partials)), partials.ts[master] // length % deployment.nodes, *joinable)
        partial, segment = expanded(low // length, high // length)
        return Visits.within(joinable, partial, segment % deployment.nodes, segment_bounds(deployment, segment))

    @override
    def check(self, deployment: Deployment, orders: Sequence[Sequence[str]]) -> None:
        if deployment.master not in deployment.windows:
            labels = ", ".join(deployment.windows)
            raise PlanError(f"there is no source {deployment.master!r}", place="master", remedy=f"use one of: {labels}")
        check_segment(deployment)
        for order in orders:
            if deployment.master not in order[:2]:
                raise PlanError(
                    f"rows of {order[0]} must visit the master first",
                    place=f"probing order {' '.join(order)}",
                    remedy=f"visit {deployment.master} first",
                )
