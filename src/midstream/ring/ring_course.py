"""The course of a step: every input's new rows go from source to source in its probing order, from node to node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from midstream.operators.multi_join import Hop, Route
from midstream.ring.columns import Visits, Words
from midstream.ring.deployment import Deployment
from midstream.ring.joined_rows import JoinedRows, Keys, concatenated
from midstream.ring.ring_node import RingNode
from midstream.ring.spreading import Spreading


class RingCourse:
    """The hops of a step, one after the other for all inputs; a hop that has no partial result costs nothing.

    The results of an input are those whose last new row is its own: they meet rows of the step only in sources of
    earlier routes, so that each result is made once, whatever the order within a step. `empty` has for each source no
    rows, with its columns. `sent` has the visits of each hop.
    """

    def __init__(
        self,
        deployment: Deployment,
        spreading: Spreading,
        keys: Keys,
        routes: Sequence[Route],
        nodes: Sequence[RingNode],
        empty: Mapping[str, pa.RecordBatch],
    ) -> None:
        self._deployment, self._spreading, self._keys = deployment, spreading, keys
        self._routes, self._nodes, self._empty = routes, nodes, empty
        self.sent = [0] * (len(routes) - 1)

    def run(self, new: Mapping[str, JoinedRows]) -> JoinedRows:
        """The step's results, from its new rows by source."""
        labels = [route.source.spec.label for route in self._routes]
        under_way = [new[label] for label in labels]
        for number in range(len(self.sent)):
            for at, route in enumerate(self._routes):
                if len(under_way[at]):
                    under_way[at] = self._hop(number, under_way[at], route.hops[number], labels[:at])
        results = [found for found in under_way if len(found)]
        return concatenated(results) if results else self._nothing(labels)

    def _hop(self, number: int, joined: JoinedRows, hop: Hop, earlier: Sequence[str]) -> JoinedRows:
        label = hop.state.labels[0]
        visits = self._spreading.visit(self._deployment, joined.partials(self._keys), label)
        self.sent[number] += len(visits)
        found: list[JoinedRows] = []
        for node, here in _by_node(visits):
            found += self._nodes[node].meet(joined, here, label, hop.on, new=label in earlier)
        return concatenated(found) if found else self._nothing([*joined.parts, label])

    def _nothing(self, labels: Sequence[str]) -> JoinedRows:
        return JoinedRows({label: self._empty[label] for label in labels}, np.zeros(0, np.int64))


def _by_node(visits: Visits) -> list[tuple[int, Visits]]:
    """The visits of each node, in order of the nodes."""
    order = np.argsort(visits.node, kind="stable")
    nodes, first = np.unique(visits.node[order], return_index=True)
    pieces: list[Words] = np.split(order, first[1:])
    return [
        (int(node), Visits(visits.partial[at], visits.node[at], visits.low[at], visits.high[at]))
        for node, at in zip(nodes, pieces, strict=True)
        if len(at)
    ]
