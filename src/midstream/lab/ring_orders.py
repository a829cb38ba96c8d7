"""The ring under the execution models of Wang §15.2: rows processed in other orders than those of their times.

A row that is processed late meets what is older than it, and what is newer. No slice fits its age then: a node compares
it with all that it keeps, and the times decide. With lazy purge a row moves on once the rows of *all* other streams
have outgrown it; without, once any has, as where the order is total.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from typing_extensions import override

from midstream.lab.ring_arrivals import RingArrivals, Row
from midstream.lab.ring_cluster import Message, RingCluster


class Execution(Enum):
    """In which order rows are processed: by time, by time in each stream, or in none (§15.2.1)."""

    TOTAL = "totally ordered"
    SEMI = "semi-ordered"
    UNORDERED = "unordered"

    def drawn(self, arrivals: RingArrivals, seed: int) -> tuple[RingArrivals, list[Row]]:
        """Number the rows of each stream as they are processed; returns them and the order of all."""
        rng = np.random.default_rng(seed)
        if self is Execution.UNORDERED:
            arrivals = arrivals.processed([rng.permutation(len(times)) for times in arrivals.times])
        rows = [(stream, number) for stream, times in enumerate(arrivals.times) for number in range(len(times))]
        if self is Execution.TOTAL:
            return arrivals, sorted(rows, key=lambda row: float(arrivals.times[row[0]][row[1]]))
        streams = rng.permutation([stream for stream, _ in rows]).tolist()
        count = [0] * arrivals.ways
        order = []
        for stream in streams:
            order.append((stream, count[stream]))
            count[stream] += 1
        return arrivals, order


@dataclass(eq=False, kw_only=True)
class OrderedRing(RingCluster):
    """A ring that processes rows in a given order, one after another, from empty slices on."""

    order: Sequence[Row]
    lazy: bool
    begin: float = -np.inf
    queued: bool = True

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        times = self.arrivals.times
        self._waiting = [(float(times[stream][number]), stream, number) for stream, number in self.order][::-1]
        self._newest = [[-np.inf] * self.arrivals.ways for _ in range(self.nodes)]

    @override
    def _purge(self, node: int, cycle: int) -> None:
        (of, number), _ = self._read[cycle]
        now = float(self.arrivals.times[of][number])
        newest = self._newest[node]
        newest[of] = max(newest[of], now)
        for stream, times in enumerate(self.arrivals.times):
            if stream == of:
                continue
            seen = min(time for other, time in enumerate(newest) if other != stream) if self.lazy else now
            here = times[self._at[node].moved[stream] : self._at[node].high[stream]]
            staying = np.flatnonzero(here > seen - self.ends[node])
            leaving = int(staying[0]) if len(staying) else len(here)
            self._move_on(node, cycle, stream, self._at[node].moved[stream] + leaving)

    @override
    def _found(self, node: int, message: Message) -> list[tuple[Row, ...]]:
        # The node's rows include some that are out of the window, which nothing else keeps apart.
        at = self._at[node]
        stream, _ = self._orders[message.rows[0][0]][len(message.rows) - 1]
        times = [float(self.arrivals.times[of][number]) for of, number in message.rows]
        return [
            rows
            for rows in self._compared(at, message, (at.low[stream], at.high[stream]))
            if max(times) - self.window < self.arrivals.times[stream][rows[-1][1]] < min(times) + self.window
        ]


def out_of_order(arrivals: RingArrivals, results: Sequence[tuple[Row, ...]]) -> int:
    """Count the pairs of one operator's results, in output order, without an older component in the earlier one.

    Lemma 15.2 says that there are none.
    """
    times = np.array([[arrivals.times[of][number] for of, number in sorted(rows)] for rows in results])
    return sum(int((times[later:] <= times[later - 1]).all(axis=1).sum()) for later in range(1, len(times)))
