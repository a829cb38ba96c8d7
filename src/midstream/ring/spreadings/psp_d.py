"""PSP-D: rows stay where they came; head and tail of the ring move (Wang §12.5, §12.6; §14.1).

The head is where the state slice table says that rows of a time go. No row is ever moved, so that several moments may
be in flight without copies: a probe of an earlier moment finds every row where it was.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from typing_extensions import override

from midstream.model.errors import PlanError
from midstream.ring.columns import Copies, Partials, StreamRows, Visits, expanded
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
        partial, place = expanded(table.place(low), table.place(high))
        return Visits.within(joinable, partial, np.array(table.nodes, np.int64)[place], table.bounds(place))

    @override
    def check(self, deployment: Deployment, orders: Sequence[Sequence[str]]) -> None:
        for label in deployment.windows:
            if label not in deployment.tables:
                raise PlanError("no state slice table", place=f"source {label}", remedy="begin one with one slice")
            if not set(deployment.tables[label].nodes) <= set(range(deployment.nodes)):
                raise PlanError(
                    f"slices at nodes beyond {deployment.nodes - 1}", place=f"source {label}", remedy="name more nodes"
                )
