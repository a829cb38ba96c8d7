"""A PSP ring that is adapted while it runs: slices of equal rows, and a length that fits the load (Wang ch. 14).

Both happen between two rows, when nothing is on its way (Theorem 7). Rows that change their node are sent round the
ring, and the ring waits for them: aggressive relocation (§14.2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from midstream.lab.ring_arrivals import Row
from midstream.lab.ring_cluster import RingCluster
from midstream.ring.cost import RingLoad, length


@dataclass(frozen=True)
class Adaptation:
    """What is adapted, every so many seconds: where slices end, and, up to `most` nodes, how many there are.

    Without `most` the length stays: workload smoothing (§14.1). With neither nothing is adapted.
    """

    every: float = 0.0
    most: int = 0


@dataclass(frozen=True)
class RingMoment:
    """A ring when a row was read in: its length, its fullest node's rows over the mean node's, and rows moved then."""

    time: float
    nodes: int
    fullest: float
    moved: int


@dataclass(eq=False, kw_only=True)
class AdaptiveRing(RingCluster):
    """A ring over arrivals of this selectivity, full at `begin`; `course` has a moment for each row."""

    selectivity: float
    adaptation: Adaptation

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        self.course: list[RingMoment] = []
        self._next = self.begin + self.adaptation.every

    @override
    def _admit(self, now: float) -> None:
        if not self._waiting:
            return
        last = self._last_time()
        moved = 0
        if self.adaptation.every and last >= self._next:
            self._next = last + self.adaptation.every
            moved, now = self._relocate(last, now)
        rows = [sum(at.high) - sum(at.low) for at in self._at]
        time = self._waiting[-1][0]
        self.course.append(RingMoment(time, self.nodes, max(rows) * len(rows) / max(sum(rows), 1), moved))
        super()._admit(now)

    def _last_time(self) -> float:
        (stream, number), _ = self._read[len(self._read) - 1] if self._read else ((0, 0), 0.0)
        return float(self.arrivals.times[stream][number]) if self._read else 0.0

    def _relocate(self, moment: float, now: float) -> tuple[int, float]:
        # Returns how many rows are sent for that, and when the ring goes on.
        come, kept = list(self._at[0].high), list(self._at[-1].low)
        rows = sum(come) - sum(kept)
        if not rows:
            return 0, now
        if self.adaptation.most:
            load = RingLoad.alike(self.arrivals.ways, rows / self.arrivals.ways, self.selectivity)
            self.nodes = length(load, self.costs, self.adaptation.most)
        before = self._places()
        ages = [moment - times[low:high] for times, low, high in zip(self.arrivals.times, kept, come, strict=True)]
        shares = np.arange(1, self.nodes) / self.nodes
        self.ends = [*np.quantile(np.concatenate(ages), shares).tolist(), self.window]
        self._at = self._sliced(moment, come)
        after = self._places()
        hops = np.array([abs(after[row] - node) for row, node in before.items() if row in after])
        leaving = np.bincount([node for row, node in before.items() if after.get(row, node) != node], minlength=1)
        pause = self.costs.send * float(leaving.max()) + self.costs.hop * float(hops.max())
        for at in self._at:
            at.free = now + pause
        return int(hops.sum()), now + pause

    def _places(self) -> dict[Row, int]:
        return {
            (stream, number): node
            for node, at in enumerate(self._at)
            for stream, (low, high) in enumerate(zip(at.low, at.high, strict=True))
            for number in range(low, high)
        }
