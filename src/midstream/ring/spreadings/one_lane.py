"""No spreading at all: one node keeps every row. Exact for every join, and what the others are measured by."""

from __future__ import annotations

import numpy as np
from typing_extensions import override

from midstream.ring.columns import Copies, Partials, StreamRows, Visits
from midstream.ring.deployment import Deployment
from midstream.ring.spreading import Spreading


class OneLane(Spreading):
    """Everything at node 0, however many there are."""

    name = "one_lane"
    stays = True

    @override
    def home(self, deployment: Deployment, label: str, rows: StreamRows) -> Copies:
        return Copies.single(np.zeros(len(rows), np.int64))

    @override
    def visit(self, deployment: Deployment, partials: Partials, label: str) -> Visits:
        every = np.arange(len(partials))
        return Visits(every, np.zeros_like(every), *deployment.joinable(partials, label))
