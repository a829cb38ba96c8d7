"""The course of a step: every input's new rows go from source to source in its probing order, from node to node."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from midstream.model.node_spread import RouteWork
from midstream.operators.multi_join import Hop, Route
from midstream.ring.columns import Visits, Words
from midstream.ring.deployment import Deployment
from midstream.ring.joined_rows import JoinedRows, Keys, concatenated
from midstream.ring.late_rows import LateRows
from midstream.ring.ring_node import HopTally, RingNode
from midstream.ring.spreading import Spreading


@dataclass(frozen=True)
class Hops:
    """The hops of all inputs: where partial results go next, and what they meet there; an input goes by its number.

    The results of an input are those whose last new row is its own: they meet rows of the step only in sources of
    earlier routes, so that each result is made once, whatever the order within a step.

    A partial result goes a *way*: a route, by its number. New rows go the way of their input's number. `own` are the
    routes of nodes with a probing order of their own, by input and node: what a node finds in a first hop goes on by
    the node's order (Wang §12.2). If `by_node`, the step counts the work of each node's partial results.
    """

    deployment: Deployment
    spreading: Spreading
    keys: Keys
    routes: Sequence[Route]
    own: Mapping[tuple[int, int], Route] = field(default_factory=dict)
    by_node: bool = False

    def __len__(self) -> int:
        return len(self.routes) - 1

    @cached_property
    def origins(self) -> int:
        """Count the groups of partial results that are counted apart: one for each node, or one for all nodes.

        Nodes differ in their orders after the first hop only, or results would be lost.
        """
        chosen = len(self) > 2 and (self.spreading.ages or self.spreading.keeps_slices)
        return self.deployment.nodes if self.by_node and chosen else 1

    def label(self, way: int, hop: int) -> str:
        """Return the source that partial results visit at a hop."""
        return self._hop(way, hop).state.labels[0]

    def visits(self, way: int, hop: int, joined: JoinedRows) -> list[tuple[int, Visits]]:
        """Group the visits of partial results at a hop by node."""
        partials = joined.partials(self.keys)
        return _by_node(self.spreading.visit(self.deployment, partials, self.label(way, hop)))

    def met(self, way: int, hop: int, node: RingNode, joined: JoinedRows, visits: Visits) -> list[JoinedRows]:
        """Find what these visits meet at the node."""
        label, on = self.label(way, hop), self._hop(way, hop).on
        tally = node.tallies.setdefault((way, hop), HopTally(self.origins, goes_on=hop + 1 < len(self)))
        found = list(node.meet(joined, visits, label, on, tally, new=label in self._earlier(way)))
        if hop or self.origins == 1:
            return found
        return [JoinedRows(one.parts, one.moment, np.full(len(one), node.number)) for one in found]

    def after(self, way: int, hop: int, node: int) -> int:
        """Return the way by which what was met at a node in a hop goes on."""
        return self._of_node.get((way, node), way) if hop == 0 else way

    def worked(self, nodes: Collection[RingNode]) -> dict[str, tuple[RouteWork, ...]]:
        """Add up what nodes did for the new rows of each source, whose number they do not know.

        Returns: by source, the work of each node's partial results where they are counted apart, else one sum.
        """
        last, each = len(self) - 1, [_Sums.of(self.origins, len(self)) for _ in self.routes]
        for node in nodes:
            origin = node.number if self.origins > 1 else 0
            for (way, hop), tally in node.tallies.items():
                start, place = self._starts[way], self._places[way][hop]
                sums = each[start]
                if hop and tally.by_origin is not None:
                    compared, matched = tally.by_origin
                    sums.compared[:, place] += compared
                    sums.matched[:, place] += matched
                    if hop < last:
                        sums.partials[:, self._places[way][hop + 1]] += matched
                else:
                    sums.compared[origin, place] += tally.compared
                    sums.matched[origin, place] += tally.matched
                    if hop < last:
                        following = self._places[self.after(way, hop, node.number)][hop + 1]
                        sums.partials[origin, following] += tally.matched
        return {route.source.spec.label: sums.works(route.order) for route, sums in zip(self.routes, each, strict=True)}

    def meets_new(self, label: str, hop: int) -> bool:
        """Return whether any input meets rows of the step in this source at this hop or a later one."""
        return any(
            self.label(way, later) == label and label in self._earlier(way)
            for way in range(len(self._ways))
            for later in range(hop, len(self))
        )

    @cached_property
    def _own_routes(self) -> dict[tuple[int, tuple[str, ...]], Route]:
        # Each once, however many nodes have it.
        return {(start, route.order): route for (start, _), route in sorted(self.own.items(), key=itemgetter(0))}

    @cached_property
    def _ways(self) -> tuple[Route, ...]:
        return (*self.routes, *self._own_routes.values())

    @cached_property
    def _of_node(self) -> dict[tuple[int, int], int]:
        numbers = {own: len(self.routes) + at for at, own in enumerate(self._own_routes)}
        return {(start, node): numbers[start, route.order] for (start, node), route in self.own.items()}

    def _hop(self, way: int, hop: int) -> Hop:
        return self._ways[way].hops[hop]

    @cached_property
    def _places(self) -> list[Sequence[int]]:
        # By way and hop, of the source that is visited, in the order of the plan.
        planned = range(len(self))
        own = [[self.routes[start].order.index(label) for label in order] for start, order in self._own_routes]
        return [*(planned for _ in self.routes), *own]

    @cached_property
    def _starts(self) -> list[int]:
        # By way.
        return [*range(len(self.routes)), *(start for start, _ in self._own_routes)]

    @cached_property
    def _labels(self) -> list[str]:
        return [route.source.spec.label for route in self.routes]

    def _earlier(self, way: int) -> list[str]:
        return self._labels[: self._starts[way]]


class _Sums(NamedTuple):
    """What partial results did, a row for each origin and a column for each source in the order of the plan."""

    compared: Words
    matched: Words
    partials: Words

    @staticmethod
    def of(origins: int, sources: int) -> _Sums:
        return _Sums(*(np.zeros((origins, sources), np.int64) for _ in range(3)))

    def works(self, order: tuple[str, ...]) -> tuple[RouteWork, ...]:
        each = zip(self.compared.tolist(), self.matched.tolist(), self.partials[:, 1:].tolist(), strict=True)
        return tuple(RouteWork(order, 0, *map(tuple, one)) for one in each)


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
        under_way = {start: new[label] for start, label in enumerate(labels) if len(new[label])}
        for hop in range(len(self._hops)):
            found = dict[int, list[JoinedRows]]()
            for way, joined in under_way.items():
                self._hop(way, hop, joined, found)
            under_way = {way: concatenated(found[way]) for way in sorted(found)}
        return concatenated([*under_way.values()]) if under_way else nothing_joined(self._empty)

    def _hop(self, way: int, hop: int, joined: JoinedRows, found: dict[int, list[JoinedRows]]) -> None:
        # What is found goes to the way by which it goes on.
        for node, visits in self._hops.visits(way, hop, joined):
            self.sent[hop] += len(visits)
            self.bytes[hop] += joined.size(visits.partial)
            if met := self._hops.met(way, hop, self._nodes[node], joined, visits):
                found.setdefault(self._hops.after(way, hop, node), []).extend(met)


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
