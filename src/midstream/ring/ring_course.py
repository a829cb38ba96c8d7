"""The course of a step: every input's new rows go from source to source in its probing order, from node to node."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter

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
    the node's order (Wang §12.2).
    """

    deployment: Deployment
    spreading: Spreading
    keys: Keys
    routes: Sequence[Route]
    own: Mapping[tuple[int, int], Route] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.routes) - 1

    @cached_property
    def chosen(self) -> bool:
        """Whether nodes may differ in their orders: not in the first hop, or a result would be lost."""
        return len(self) > 2 and (self.spreading.ages or self.spreading.keeps_slices)

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
        tally = node.tallies.setdefault((way, hop), HopTally(self._origins))
        found = list(node.meet(joined, visits, label, on, tally, new=label in self._earlier(way)))
        if hop or not self.chosen:
            return found
        return [replace(one, origin=np.full(len(one), node.number)) for one in found]

    def after(self, way: int, hop: int, node: int) -> int:
        """Return the way by which what was met at a node in a hop goes on."""
        return self._of_node.get((way, node), way) if hop == 0 else way

    def worked(self, nodes: Collection[RingNode]) -> dict[str, tuple[RouteWork, ...]]:
        """Add up what nodes did for the new rows of each source, whose number they do not know.

        Returns: by source, the work of each node's partial results if nodes may differ in their orders, else one sum.
        """
        last, each = len(self) - 1, [[_Sums(len(self)) for _ in range(self._origins)] for _ in self.routes]
        for node in nodes:
            for (way, hop), tally in node.tallies.items():
                start = self._start(way)
                place = self._place(start, way, hop)
                if hop and self.chosen:
                    compared, matched = tally.compared_of.tolist(), tally.matched_of.tolist()
                    by_origin = [one for one in enumerate(zip(compared, matched, strict=True)) if any(one[1])]
                else:
                    by_origin = [(node.number if self.chosen else 0, (tally.compared, tally.matched))]
                for origin, (compared_here, matched_here) in by_origin:
                    sums = each[start][origin]
                    sums.compared[place] += compared_here
                    sums.matched[place] += matched_here
                    if hop < last:
                        sums.partials[self._place(start, self.after(way, hop, origin), hop + 1)] += matched_here
        return {
            route.source.spec.label: tuple(
                RouteWork(route.order, 0, tuple(sums.compared), tuple(sums.matched), tuple(sums.partials[1:]))
                for sums in own
            )
            for route, own in zip(self.routes, each, strict=True)
        }

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

    @property
    def _origins(self) -> int:
        return self.deployment.nodes if self.chosen else 1

    def _hop(self, way: int, hop: int) -> Hop:
        return self._ways[way].hops[hop]

    def _place(self, start: int, way: int, hop: int) -> int:
        # Of the source that is visited, in the order of the plan.
        return hop if way == start else self.routes[start].order.index(self.label(way, hop))

    def _start(self, way: int) -> int:
        return way if way < len(self.routes) else self._labels.index(self._ways[way].source.spec.label)

    @cached_property
    def _labels(self) -> list[str]:
        return [route.source.spec.label for route in self.routes]

    def _earlier(self, way: int) -> list[str]:
        return self._labels[: self._start(way)]


class _Sums:
    # Of the partial results of one origin, by source in the order of the plan.
    def __init__(self, sources: int) -> None:
        self.compared, self.matched, self.partials = [0] * sources, [0] * sources, [0] * sources


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
