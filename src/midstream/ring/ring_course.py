"""The course of a step: every input's new rows go from source to source in its probing order, from node to node."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from midstream.model.node_spread import RouteWork
from midstream.operators.multi_join import Hop, Route
from midstream.ring.columns import Visits, Words
from midstream.ring.deployment import Deployment
from midstream.ring.joined_rows import JoinedRows, Keys, concatenated
from midstream.ring.late_rows import LateRows
from midstream.ring.ring_node import RingNode
from midstream.ring.spreading import Spreading


@dataclass(frozen=True)
class Hops:
    """The hops of all inputs: where partial results go next, and what they meet there; an input goes by its number.

    The results of an input are those whose last new row is its own: they meet rows of the step only in sources of
    earlier routes, so that each result is made once, whatever the order within a step.
    """

    deployment: Deployment
    spreading: Spreading
    keys: Keys
    routes: Sequence[Route]

    def __len__(self) -> int:
        return len(self.routes) - 1

    def label(self, start: int, hop: int) -> str:
        """Return the source that an input's partial results visit at a hop."""
        return self._hop(start, hop).state.labels[0]

    def visits(self, start: int, hop: int, joined: JoinedRows) -> list[tuple[int, Visits]]:
        """Group the visits of an input's partial results at a hop by node."""
        partials = joined.partials(self.keys)
        return _by_node(self.spreading.visit(self.deployment, partials, self.label(start, hop)))

    def met(self, start: int, hop: int, node: RingNode, joined: JoinedRows, visits: Visits) -> list[JoinedRows]:
        """Find what these visits meet at the node."""
        label, on = self.label(start, hop), self._hop(start, hop).on
        compared, matched = node.comparisons, node.rows_out
        found = list(node.meet(joined, visits, label, on, new=label in self._earlier(start)))
        node.compared[start, hop] += node.comparisons - compared
        node.matched[start, hop] += node.rows_out - matched
        return found

    def worked(self, nodes: Collection[RingNode]) -> dict[str, RouteWork]:
        """Add up what nodes did for the new rows of each source, whose number they do not know."""
        hops = range(len(self))
        return {
            route.source.spec.label: RouteWork(
                tuple(self.label(start, hop) for hop in hops),
                comparisons=tuple(sum(node.compared[start, hop] for node in nodes) for hop in hops),
                matches=tuple(sum(node.matched[start, hop] for node in nodes) for hop in hops),
            )
            for start, route in enumerate(self.routes)
        }

    def meets_new(self, label: str, hop: int) -> bool:
        """Return whether any input meets rows of the step in this source at this hop or a later one."""
        return any(
            self.label(start, later) == label and label in self._earlier(start)
            for start in range(len(self.routes))
            for later in range(hop, len(self))
        )

    def _hop(self, start: int, hop: int) -> Hop:
        return self.routes[start].hops[hop]

    def _earlier(self, start: int) -> list[str]:
        return [route.source.spec.label for route in self.routes[:start]]


class RingCourse:
    """The hops of a step, one after the other for all inputs; a hop that has no partial result costs nothing.

    `empty` has for each source no rows, with its columns. `sent` has the visits of each hop, `bytes` the size of
    what visits.
    """

    def __init__(self, hops: Hops, nodes: Sequence[RingNode], empty: Mapping[str, pa.RecordBatch]) -> None:
        self._hops, self._nodes, self._empty = hops, nodes, empty
        self.sent, self.bytes = [0] * len(hops), [0] * len(hops)

    def run(self, new: Mapping[str, JoinedRows]) -> JoinedRows:
        """Compute the step's results from its new rows by source."""
        labels = [route.source.spec.label for route in self._hops.routes]
        under_way = [new[label] for label in labels]
        for hop in range(len(self._hops)):
            for start, joined in enumerate(under_way):
                if len(joined):
                    under_way[start] = self._hop(start, hop, joined)
        results = [found for found in under_way if len(found)]
        return concatenated(results) if results else nothing_joined(self._empty)

    def _hop(self, start: int, hop: int, joined: JoinedRows) -> JoinedRows:
        found = list[JoinedRows]()
        for node, visits in self._hops.visits(start, hop, joined):
            self.sent[hop] += len(visits)
            self.bytes[hop] += joined.size(visits.partial)
            found += self._hops.met(start, hop, self._nodes[node], joined, visits)
        return concatenated(found) if found else nothing_joined(self._empty)


def nothing_joined(empty: Mapping[str, pa.RecordBatch]) -> JoinedRows:
    """Return no results, with the columns of all sources."""
    return JoinedRows({label: LateRows.of(batch) for label, batch in empty.items()}, np.zeros(0, np.int64))


def _by_node(visits: Visits) -> list[tuple[int, Visits]]:
    # In order of the nodes.
    if not len(visits):
        return []
    counts = np.bincount(visits.node)
    if np.count_nonzero(counts) == 1:
        return [(len(counts) - 1, visits)]
    # There are at most MOST_NODES of a spread: their numbers fit into 16 bits, which numpy sorts by radix.
    order = np.argsort(visits.node.astype(np.uint16), kind="stable")
    nodes = np.flatnonzero(counts)
    pieces: list[Words] = np.split(order, np.cumsum(counts[nodes])[:-1])
    return [
        (node, Visits(visits.partial[at], visits.node[at], visits.low[at], visits.high[at]))
        for node, at in zip(nodes.tolist(), pieces, strict=True)
    ]
