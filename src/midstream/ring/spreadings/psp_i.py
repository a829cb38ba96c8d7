"""PSP-I: the ring of time slices with several moments in flight (interleaved processing, Wang §12.4).

A row that has moved on stays at the node where an earlier probe will still look for it. Each probe meets what lies
between its own start and end marks: the bounds of its visit.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from typing_extensions import override

from midstream.ring.columns import Copies, Partials, StreamRows, Visits
from midstream.ring.deployment import Deployment
from midstream.ring.spreading import Spreading
from midstream.ring.spreadings.psp import node_of, visits_at


class PspI(Spreading):
    """Home by age at every moment in flight; visits by the slices of the partial result's own moment."""

    name = "psp_i"
    options = ("count_bound",)
    ages = True
    rounds = 2

    @override
    def home(self, deployment: Deployment, label: str, rows: StreamRows) -> Copies:
        nodes = [node_of(deployment, label, moment - rows.ts) for moment in deployment.moments]
        # A row goes from slice to slice: where it is no more at the node of the moment before, it was never there.
        moved = [np.flatnonzero(now != before) for before, now in pairwise(nodes)]
        return Copies(
            np.concatenate([np.arange(len(rows)), *moved]),
            np.concatenate([nodes[0], *(node[at] for node, at in zip(nodes[1:], moved, strict=True))]),
        )

    @override
    def visit(self, deployment: Deployment, partials: Partials, label: str) -> Visits:
        return visits_at(deployment, partials, label, partials.moment)
