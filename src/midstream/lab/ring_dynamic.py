"""PSP-D tuple at a time: rows stay where they came, head and tail move round the ring (Wang §12.5, §12.6, Fig. 12.7).

A row is put into one state and taken out of one, where PSP does both once for each slice. The head moves against the
direction of the ring each time that its slice, 1/N of the window, is full. Of several rows under way each has its own
head and tail; the splitter sends along with a row the time of the oldest one, and what that may still meet is not
purged.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

import numpy as np
from typing_extensions import override

from midstream.lab.ring_arrivals import Row
from midstream.lab.ring_cluster import ClusterNode, Message, RingCluster


@dataclass(eq=False)
class DynamicRing(RingCluster):
    """A ring of so many nodes whose head moves; what a node has are rows by number, those that came first first."""

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        self._oldest: dict[int, float] = {}
        self._kept: list[list[dict[int, None]]] = [[{} for _ in self.arrivals.times] for _ in range(self.nodes)]
        for stream, times in enumerate(self.arrivals.times):
            for number in np.flatnonzero((times < self.begin) & (times > self.begin - self.window)).tolist():
                self._kept[self._head_of(float(times[number]))][stream][number] = None

    @override
    def _head_of(self, time: float) -> int:
        return -self._slice_of(time) % self.nodes

    def _slice_of(self, time: float) -> int:
        return floor(time * self.nodes / self.window)

    @override
    def _keep(self, at: ClusterNode, message: Message) -> None:
        ((stream, number),) = message.rows
        self._kept[self._heads[message.cycle]][stream][number] = None
        at.free += self.costs.insert
        self.counts.inserted += 1

    @override
    def _purge(self, node: int, cycle: int) -> None:
        # Only at the tail is there anything to purge.
        under_way = [self._time(self._read[other][0]) for other in self._cycles]
        oldest = self._oldest.setdefault(cycle, min(under_way))
        for kept, times in zip(self._kept[node], self.arrivals.times, strict=True):
            gone = [number for number in kept if times[number] <= oldest - self.window]
            for number in gone:
                del kept[number]
            self._at[node].free += self.costs.purge * len(gone)
            self.counts.purged += len(gone)

    @override
    def _found(self, node: int, message: Message) -> list[tuple[Row, ...]]:
        row, _ = self._read[message.cycle]
        stream, _ = self._orders[row[0]][len(message.rows) - 1]
        found, kept = list[tuple[Row, ...]](), self._kept[node][stream]
        spans = self._spans_at(node, stream, self._time(row))
        self.counts.met(message.cycle, node, sum(high - low for low, high in spans))
        for low, high in spans:
            if any(number not in kept for number in range(low, high)):
                self.counts.violations.append("Lemma 7")
            found += self._compared(self._at[node], message, (low, high))
        return found

    def _spans_at(self, node: int, stream: int, now: float) -> list[tuple[int, int]]:
        # The head may be the tail as well: it has the newest slice, and what is left of the oldest.
        times, head = self.arrivals.times[stream], self._slice_of(now)
        slices = [one for one in range(head - self.nodes, head + 1) if -one % self.nodes == node]
        spans = []
        for one in slices:
            begin, end = one * self.window / self.nodes, (one + 1) * self.window / self.nodes
            low = max(int(np.searchsorted(times, begin)), int(np.searchsorted(times, now - self.window, "right")))
            high = int(np.searchsorted(times, min(end, now)))
            if low < high:
                spans.append((low, high))
        return spans

    @override
    def _expire(self, node: int, cycle: int) -> None:
        # What no probe under way may meet is purged as the next row passes.
        return

    @override
    def _rows(self) -> int:
        return sum(len(kept) for node in self._kept for kept in node)

    def _time(self, row: Row) -> float:
        return float(self.arrivals.times[row[0]][row[1]])
