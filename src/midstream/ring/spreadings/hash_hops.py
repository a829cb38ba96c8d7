"""Hash hops: each source is placed by a key of its own, which the partial results that come may or may not know.

Pipelined parallelism by hash (Wang §11.2): no copies, any number of key classes. Where an equality ties the key that a
source is placed by to what a partial result carries, one node is visited, otherwise all of them.
"""

from __future__ import annotations

import numpy as np
from typing_extensions import override

from midstream.ring.columns import Copies, Partials, StreamRows, Visits, Words
from midstream.ring.deployment import Deployment
from midstream.ring.spreading import Spreading
from midstream.runtime.lane_key import slots_of


class HashHops(Spreading):
    """Home and visit by hash of the source's placement key; rows of a source without one are placed by event time."""

    name = "hash_hops"
    preference = 1
    by_key = True

    @override
    def home(self, deployment: Deployment, label: str, rows: StreamRows) -> Copies:
        key = deployment.placed_by.get(label)
        return Copies.single(_node(deployment, rows.ts if key is None else rows.keys[key]))

    @override
    def visit(self, deployment: Deployment, partials: Partials, label: str) -> Visits:
        low, high = deployment.joinable(partials, label)
        every = np.arange(len(partials))
        known = partials.keys.get(deployment.placed_by.get(label, ""))
        if known is not None:
            return Visits(every, _node(deployment, known), low, high)
        partial = np.repeat(every, deployment.nodes)
        return Visits(partial, np.tile(np.arange(deployment.nodes), len(every)), low[partial], high[partial])


def _node(deployment: Deployment, codes: Words) -> Words:
    return slots_of(codes).astype(np.int64) % deployment.nodes
