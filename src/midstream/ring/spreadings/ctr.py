"""CTR, coordinated tuple routing: several nodes keep each segment, and a probe picks the fewest that hold all it needs.

[GYW07] as Wang §15.1 has it: L copies of each segment on nodes drawn at random (§16.1), and a least set cover for every
hop. One node answers for each segment, which is what removes duplicates here.

Differs in how nodes are drawn: of N segments that follow each other every node has the same number. Drawn by itself for
every segment, which is random as well, the busiest of 16 nodes had 2.5 times the mean after 17 windows, and so 1.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from typing_extensions import override

from midstream.model.errors import PlanError
from midstream.optimizer.samples.hashing import hashes, salt
from midstream.ring.columns import Copies, Partials, StreamRows, Visits, Words, expanded
from midstream.ring.deployment import Deployment
from midstream.ring.segments import bounds, check_segment
from midstream.ring.spreading import Spreading

MOST_COPIES = 8
"""With more copies than this, a cover would be looked for among too many."""


class Ctr(Spreading):
    """Home at L nodes by hash of the segment; visits to a least cover of the segments that may join."""

    name = "ctr"
    options = ("segment", "copies")

    @override
    def home(self, deployment: Deployment, label: str, rows: StreamRows) -> Copies:
        segments, place = np.unique(rows.ts // deployment.segment, return_inverse=True)
        holders = _holders(deployment, label, segments)
        return Copies(np.repeat(np.arange(len(rows)), deployment.copies), holders[place].ravel())

    @override
    def visit(self, deployment: Deployment, partials: Partials, label: str) -> Visits:
        low, high = joinable = deployment.joinable(partials, label)
        first, last = low // deployment.segment, high // deployment.segment
        partial, segment = expanded(first, last)
        node = np.empty_like(segment)
        # Partial results that need the same segments take the same way.
        for begin, end in np.unique(np.stack([first, last], axis=1), axis=0):
            chosen = np.array(least_cover(_holders(deployment, label, np.arange(begin, end + 1)).tolist()))
            here = (first[partial] == begin) & (last[partial] == end)
            node[here] = chosen[segment[here] - begin]
        return Visits.within(joinable, partial, node, bounds(deployment, segment))

    @override
    def check(self, deployment: Deployment, orders: Sequence[Sequence[str]]) -> None:
        most = min(deployment.nodes, MOST_COPIES)
        if not 1 <= deployment.copies <= most:
            raise PlanError(
                f"{deployment.copies} copies on {deployment.nodes} nodes", place="copies", remedy=f"name 1 to {most}"
            )
        check_segment(deployment)


def least_cover(holders: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """For each segment one of the nodes that hold it, so that as few nodes as possible are visited.

    Found by trying them all: nothing joins rows of more than three segments, for none is shorter than a window.

    >>> least_cover([[1, 2], [2, 3], [3, 2]])
    (2, 2, 2)
    """
    return min(product(*holders), key=lambda chosen: len(set(chosen)))


def _holders(deployment: Deployment, label: str, segments: Words) -> Words:
    """The nodes that hold each segment, one row for each.

    N segments make a round. Nodes and distances are shuffled for each: the first copy of a round's i-th segment is at
    the i-th node, the others are at their distances from there.
    """
    rounds, place = np.divmod(segments, deployment.nodes)
    distinct, at = np.unique(rounds, return_inverse=True)
    nodes = _shuffled(deployment, distinct, label, "node", range(deployment.nodes))
    distances = _shuffled(deployment, distinct, label, "distance", range(1, deployment.nodes))
    distances = np.concatenate([np.zeros((len(distinct), 1), np.int64), 1 + distances], axis=1)
    found: Words = nodes[at[:, None], (place[:, None] + distances[at, : deployment.copies]) % deployment.nodes]
    return found


def _shuffled(deployment: Deployment, rounds: Words, label: str, what: str, things: range) -> Words:
    """For each round the places of these things in the order of their hashes."""
    drawn = [hashes(rounds, salt(deployment.seed, label, what, str(thing))) for thing in things]
    if not drawn:
        return np.zeros((len(rounds), 0), np.int64)
    return np.argsort(np.stack(drawn, axis=1), axis=1, kind="stable").astype(np.int64)
