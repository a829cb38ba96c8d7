"""A join whose rows stay where they are sent, tuple at a time on a virtual cluster: ATR and CTR (Wang §15.1, §16.4).

The spreading itself says where rows are kept and which nodes a partial result visits. A node of its own sends the rows
(§16.1), one row is processed after another, and a node compares a partial result with all that it keeps of a stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt

from midstream.lab.ring_cluster import RingArrivals, RingCounts, Row
from midstream.ring.columns import Partials, StreamRows, Words
from midstream.ring.cost import RingCosts
from midstream.ring.deployment import Deployment
from midstream.ring.spreading import Spreading

LABELS = "ABCDEFGHI"
MICROSECONDS = 1e6

Bounds = tuple[int, int]
"""Between which event times, both inclusive, a partial result meets rows at a node."""


@dataclass(frozen=True)
class _Probe:
    """A partial result on its way to a node, and what it may meet there."""

    rows: tuple[Row, ...]
    bounds: tuple[Bounds, ...]


class RoutedCluster:
    """So many nodes over arrivals, by a spreading whose rows are never moved; streams are labelled A, B, ...

    Rows before `begin`, in seconds, are taken to have come. Results, latencies, pairs and state are counted as those
    of a ring are; what is sent has one entry for each row, its copies included.
    """

    def __init__(
        self, spreading: Spreading, deployment: Deployment, arrivals: RingArrivals, costs: RingCosts, begin: float
    ) -> None:
        self.spreading, self.deployment, self.arrivals, self.costs = spreading, deployment, arrivals, costs
        self.counts = RingCounts()
        self._times = [np.round(times * MICROSECONDS).astype(np.int64) for times in arrivals.times]
        self._kept = [self._homes(stream) for stream in range(arrivals.ways)]
        self._free = [0.0] * deployment.nodes
        self._events: list[tuple[float, int, int, _Probe]] = []
        self._sequence = 0
        self._coming = arrivals.since(begin)

    def run(self) -> RingCounts:
        """Process every arrival, one after another, and return what was done."""
        now = 0.0
        for cycle, (time, stream, number) in enumerate(self._coming):
            begin = max(now, time)
            self.counts.compared[cycle] = self.counts.sent[cycle] = 0
            self._send_row(cycle, (stream, number), begin)
            while self._events:
                at, _, node, probe = heappop(self._events)
                self._probe(cycle, node, probe, at, begin)
            now = max(begin, *self._free)
            self.counts.state_rows.append(self._state(stream, number))
        self.counts.finished = now
        return self.counts

    def _homes(self, stream: int) -> npt.NDArray[np.bool_]:
        # Nodes down, rows across.
        times = self._times[stream]
        copies = self.spreading.home(self.deployment, LABELS[stream], StreamRows(times, {}))
        found = np.zeros((self.deployment.nodes, len(times)), np.bool_)
        found[copies.node, copies.row] = True
        return found

    def _send_row(self, cycle: int, row: Row, begin: float) -> None:
        # A node that is both a home and a first visit needs the row once.
        visited = self._visits([(row,)])[0]
        stream, number = row
        homes = set(np.flatnonzero(self._kept[stream][:, number]).tolist())
        for place, node in enumerate([*visited, *sorted(homes - visited.keys())]):
            self.counts.sent[cycle] += 1
            at = begin + (place + 1) * self.costs.send + self.costs.hop
            if node in visited:
                self._schedule(at, node, _Probe((row,), visited[node]))

    def _visits(self, found: list[tuple[Row, ...]]) -> list[Mapping[int, tuple[Bounds, ...]]]:
        # All partial results are of the same streams.
        start = found[0][0][0]
        stream = self.arrivals.order(start)[len(found[0]) - 1][0]
        ts: dict[str, Words] = {
            LABELS[of]: np.array([self._times[of][rows[place][1]] for rows in found])
            for place, (of, _) in enumerate(found[0])
        }
        partials = Partials(ts, {}, ts[LABELS[start]])
        visits = self.spreading.visit(self.deployment, partials, LABELS[stream])
        nodes: list[dict[int, tuple[Bounds, ...]]] = [{} for _ in found]
        columns = (visits.partial, visits.node, visits.low, visits.high)
        for partial, node, low, high in zip(*(values.tolist() for values in columns), strict=True):
            nodes[partial][node] = (*nodes[partial].get(node, ()), (low, high))
        return list(nodes)

    def _schedule(self, time: float, node: int, probe: _Probe) -> None:
        heappush(self._events, (time, self._sequence, node, probe))
        self._sequence += 1

    def _probe(self, cycle: int, node: int, probe: _Probe, time: float, begin: float) -> None:
        stream, by = self.arrivals.order(probe.rows[0][0])[len(probe.rows) - 1]
        low, high = self._present(stream, probe.rows[0])
        here = self._kept[stream][node, low:high]
        compared = int(here.sum())
        self.counts.met(cycle, node, compared)
        self._free[node] = max(time, self._free[node]) + self.costs.join * compared
        decisive = next(row for row in probe.rows if row[0] == by)
        found = [
            (*probe.rows, (stream, number))
            for number in self.arrivals.matching(decisive, stream, low, high).tolist()
            if here[number - low] and any(a <= self._times[stream][number] <= b for a, b in probe.bounds)
        ]
        if len(probe.rows) + 1 == self.arrivals.ways:
            self.counts.results += found
            self.counts.latencies += [self._free[node] - begin] * len(found)
        elif found:
            for rows, visited in zip(found, self._visits(found), strict=True):
                self._send_on(cycle, node, rows, visited)

    def _send_on(self, cycle: int, node: int, rows: tuple[Row, ...], visited: Mapping[int, tuple[Bounds, ...]]) -> None:
        for to, bounds in visited.items():
            arrival = self._free[node]
            if to != node:
                self.counts.sent[cycle] += 1
                self._free[node] += self.costs.send
                arrival = self._free[node] + self.costs.hop
            self._schedule(arrival, to, _Probe(rows, bounds))

    def _present(self, stream: int, row: Row) -> tuple[int, int]:
        # Rows by number: within the window, and come before the given row.
        now, window = self._times[row[0]][row[1]], self.deployment.windows[LABELS[stream]]
        low, high = np.searchsorted(self._times[stream], [now - window, now], "left")
        return int(low), int(high) + (stream == row[0])

    def _state(self, stream: int, number: int) -> int:
        # A row counts once for each of its nodes.
        spans = ((of, self._present(of, (stream, number))) for of in range(self.arrivals.ways))
        return sum(int(self._kept[of][:, low:high].sum()) for of, (low, high) in spans)
