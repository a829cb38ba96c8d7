"""PSP-D: rows stay where they came; head and tail of the ring move (Wang §12.5, §12.6; §14.1).

The head is where the state slice table says that rows of a time go. No row is ever moved, so that several moments may
be in flight without copies: a probe of an earlier moment finds every row where it was.

Differs from §12.5 in that a node may have several slices of a source at once. A partial result visits a node once for
all of them, from the beginning of the first to the end of the last: no row lies at two nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from typing_extensions import override

from midstream.model.errors import PlanError
from midstream.ring.columns import Copies, Partials, StreamRows, Visits, present
from midstream.ring.deployment import Deployment
from midstream.ring.spreading import Spreading


class PspD(Spreading):
    """Home by the state slice table; visits to all slices that have what a partial result may join."""

    name = "psp_d"
    options = ("count_bound",)
    keeps_slices = True
    preference = 2

    @override
    def home(self, deployment: Deployment, label: str, rows: StreamRows) -> Copies:
        table = deployment.tables[label]
        return Copies.single(np.array(table.nodes, np.int64)[table.place(rows.ts)])

    @override
    def visit(self, deployment: Deployment, partials: Partials, label: str) -> Visits:
        table = deployment.tables[label]
        low, high = joinable = deployment.joinable(partials, label)
        at = np.array(table.nodes, np.int64)
        nodes = present(at)
        own = at == nodes[:, None]
        # For each node, how many of the slices before each are its own; and its own one after the other.
        before = np.zeros((len(nodes), len(at) + 1), np.int32)
        np.cumsum(own, axis=1, out=before[:, 1:])
        slices, begin = np.nonzero(own)[1], np.append(0, np.cumsum(before[:, -1]))
        first, last = before[:, table.place(low)], before[:, table.place(high) + 1]
        partial, node = np.nonzero((first < last).T)
        begins, _ = table.bounds(slices[begin[node] + first[node, partial]])
        _, ends = table.bounds(slices[begin[node] + last[node, partial] - 1])
        return Visits.within(joinable, partial, nodes[node], (begins, ends))

    @override
    def check(self, deployment: Deployment, orders: Sequence[Sequence[str]]) -> None:
        for label in deployment.windows:
            if label not in deployment.tables:
                raise PlanError(
                    "there is no state slice table",
                    place=f"source {label}",
                    remedy="begin with a state slice table of a single slice",
                )
            if not set(deployment.tables[label].nodes) <= set(range(deployment.nodes)):
                raise PlanError(
                    f"there are slices at nodes beyond {deployment.nodes - 1}",
                    place=f"source {label}",
                    remedy="use more nodes",
                )
