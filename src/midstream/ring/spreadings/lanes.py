"""Lanes: one key class ties all sources, and rows of a key meet at one node (partitioned parallelism, Wang §11.2)."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override

from midstream.model.errors import PlanError
from midstream.ring.deployment import Deployment
from midstream.ring.spreadings.hash_hops import HashHops


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
