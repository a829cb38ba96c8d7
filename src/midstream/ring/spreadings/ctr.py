"""CTR, coordinated tuple routing: several nodes keep each segment, and a probe picks the fewest that hold all it needs.

[GYW07] as Wang §15.1 has it: L copies of each segment on nodes drawn at random (§16.1), and a weighted minimum set
cover for every hop. One node answers for each segment, which is what removes duplicates here. The shorter segments are,
the more nodes share the probes of a moment.

Differs in how nodes are drawn: of N segments that follow each other every node has the same number. Drawn by itself for
every segment, which is random as well, the busiest of 16 nodes had 2.5 times the mean after 17 windows, and so 1.5. And
in what weighs a node: not its load at the moment, which no other node knows, but the segments that it answers for in
the covers before, in a round of N segments. So every node finds the same cover by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from typing_extensions import override

from midstream.model.errors import PlanError
from midstream.model.words import span_text
from midstream.optimizer.samples.hashing import hashes, salt
from midstream.ring.columns import Copies, Partials, StreamRows, Visits, Words, expanded
from midstream.ring.deployment import Deployment, segment_bounds
from midstream.ring.spreading import Spreading

MOST_COPIES = 8
"""With more copies than this, a cover would be looked for among too many."""

MOST_SEGMENTS = 64
"""Segments to a window at most: each of them is looked up for every probe."""


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
        rounds, widths = first // deployment.nodes, last - first + 1
        for at, width in np.unique(np.stack([rounds, widths], axis=1)[widths > 0], axis=0):
            here = (rounds[partial] == at) & (widths[partial] == width)
            begin = first[partial[here]]
            starts = np.arange(at * deployment.nodes, int(begin.max()) + 1)
            segments = starts[:, None] + np.arange(width)
            holders = _holders(deployment, label, segments.ravel()).reshape(*segments.shape, deployment.copies)
            node[here] = weighted_covers(holders, deployment.nodes)[begin - starts[0], segment[here] - begin]
        return Visits.within(joinable, partial, node, segment_bounds(deployment, segment))

    @override
    def check(self, deployment: Deployment, orders: Sequence[Sequence[str]]) -> None:
        most = min(deployment.nodes, MOST_COPIES)
        if not 1 <= deployment.copies <= most:
            raise PlanError(
                f"{deployment.nodes} nodes cannot have {deployment.copies} copies",
                place="copies",
                remedy=f"use 1 to {most}",
            )
        widest = max(deployment.windows.values())
        if deployment.segment < 1 or widest > MOST_SEGMENTS * deployment.segment:
            raise PlanError(
                f"a segment of {span_text(deployment.segment)} would divide the widest window, {span_text(widest)}, "
                f"into more than {MOST_SEGMENTS} parts",
                place="segment",
                remedy=f"use at least {span_text(max(-(-widest // MOST_SEGMENTS), 1))}",
            )


def weighted_covers(holders: Words, nodes: int) -> Words:
    """Choose for each probe and each segment that it needs one of the nodes that hold the segment.

    `holders` has the nodes by probe, segment and copy. Few nodes are visited (a greedy weighted set cover), and those
    rather that the probes before have put less on: a node weighs 1, and up to 1 more by the segments it answered for.

    >>> weighted_covers(np.array([[[1, 2], [2, 3], [3, 2]]]), nodes=4).tolist()
    [[2, 2, 2]]
    >>> weighted_covers(np.array([[[0, 1]], [[0, 1]], [[0, 1]]]), nodes=2).tolist()
    [[0], [1], [0]]
    """
    load, chosen = np.zeros(nodes), np.full(holders.shape[:2], -1)
    for probe, mine in zip(holders, chosen, strict=True):
        weight = 1 + load / (load.max() + 1)
        while (open_ := mine < 0).any():
            gain = np.bincount(probe[open_].ravel(), minlength=nodes)
            best = int((gain / weight).argmax())
            mine[open_ & (probe == best).any(axis=1)] = best
        load += np.bincount(mine, minlength=nodes)
    return chosen


def _holders(deployment: Deployment, label: str, segments: Words) -> Words:
    # N segments make a round. Nodes and distances are shuffled for each: the first copy of a round's i-th segment is at
    # the i-th node, the others are at their distances from there.
    rounds, place = np.divmod(segments, deployment.nodes)
    distinct, at = np.unique(rounds, return_inverse=True)
    nodes = _shuffled(deployment, distinct, label, "node", range(deployment.nodes))
    distances = _shuffled(deployment, distinct, label, "distance", range(1, deployment.nodes))
    distances = np.concatenate([np.zeros((len(distinct), 1), np.int64), 1 + distances], axis=1)
    found: Words = nodes[at[:, None], (place[:, None] + distances[at, : deployment.copies]) % deployment.nodes]
    return found


def _shuffled(deployment: Deployment, rounds: Words, label: str, what: str, things: range) -> Words:
    # For each round the places of these things in the order of their hashes.
    drawn = [hashes(rounds, salt(deployment.seed, label, what, str(thing))) for thing in things]
    if not drawn:
        return np.zeros((len(rounds), 0), np.int64)
    return np.argsort(np.stack(drawn, axis=1), axis=1, kind="stable").astype(np.int64)
