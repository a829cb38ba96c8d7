"""Lanes: one key class ties all sources, and rows of a key meet at one node (partitioned parallelism, Wang §11.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from typing_extensions import override

from midstream.model.errors import PlanError
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


class Lanes(HashHops):
    """Hash hops whose sources are all placed by the same key class: no partial result ever leaves its node."""

    name = "lanes"
    stays = True
    preference = 0

    @override
    def check(self, deployment: Deployment, orders: Sequence[Sequence[str]]) -> None:
        if len({deployment.placed_by.get(label) for label in deployment.windows} | {None}) != 2 or any(
            label not in deployment.placed_by for label in deployment.windows
        ):
            raise PlanError(
                "no single key joins all sources",
                place="lanes",
                remedy="use hash_hops, or psp_d if there is no equality",
            )
