"""The ring tuple at a time on a virtual cluster, by the protocol of Wang §12.2-12.4 (Figs. 12.3 and 12.5).

Each node takes what its one neighbour sends in order, and nothing but that order keeps the nodes in step: purged rows
travel ahead of the probe that purged them, a partial result ends its life where it was made, and END tuples close the
rounds of a cycle. Comparing a pair, sending a tuple and a hop of the network take virtual time.

Differs in that an END tuple carries no result: it follows the last one, and so there is one where nothing matched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from heapq import heappop, heappush
from itertools import pairwise
from math import floor

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from midstream.ring.cost import RingCosts, RingLoad, length

Words = npt.NDArray[np.int64]

Row = tuple[int, int]
"""A row: its stream, and its number in the stream."""


@dataclass(frozen=True)
class RingArrivals:
    """What comes to a ring: for each stream ascending times in seconds, and which rows of neighbouring streams match.

    Streams are joined in a chain, and each row visits them outwards from its own, so that every pair compared decides
    by one predicate: `matches[i]` has rows of stream i down and of stream i + 1 across.
    """

    times: tuple[npt.NDArray[np.float64], ...]
    matches: tuple[npt.NDArray[np.bool_], ...]

    @staticmethod
    def drawn(ways: int, rate: float, selectivity: float, seconds: float, seed: int) -> RingArrivals:
        """Draw Poisson arrivals at `rate` rows a second in each stream, and predicates of this selectivity."""
        return RingArrivals.paced(ways, [(rate, seconds)], selectivity, seed)

    @staticmethod
    def paced(ways: int, paces: Sequence[tuple[float, float]], selectivity: float, seed: int) -> RingArrivals:
        """Draw arrivals at a changing rate: each pace is rows a second in each stream, and for how many seconds.

        >>> found = RingArrivals.paced(2, [(10, 1.0), (100, 1.0)], 0.5, seed=1)
        >>> [int((times < 1).sum()) < 30 < int((times > 1).sum()) for times in found.times]
        [True, True]
        """
        rng = np.random.default_rng(seed)
        begins = np.cumsum([0.0, *(seconds for _, seconds in paces)])
        times = tuple(
            np.concatenate(
                [
                    np.sort(rng.uniform(begin, begin + seconds, rng.poisson(rate * seconds)))
                    for begin, (rate, seconds) in zip(begins, paces, strict=False)
                ]
            )
            for _ in range(ways)
        )
        sizes = [len(found) for found in times]
        return RingArrivals(times, tuple(rng.random((a, b)) < selectivity for a, b in pairwise(sizes)))

    def later(self, seconds: float) -> RingArrivals:
        """Shift the rows in time."""
        return replace(self, times=tuple(times + seconds for times in self.times))

    def since(self, begin: float) -> list[tuple[float, int, int]]:
        """List the rows that come from `begin` on, in that order: when, of which stream, of which number."""
        return sorted(
            (time, stream, number)
            for stream, times in enumerate(self.times)
            for number, time in enumerate(times)
            if time >= begin
        )

    def processed(self, orders: Sequence[Words]) -> RingArrivals:
        """Number the rows of each stream as they are processed: the i-th is that of number `orders[...][i]`."""
        times = tuple(found[order] for found, order in zip(self.times, orders, strict=True))
        matches = tuple(
            found[np.ix_(down, across)] for found, (down, across) in zip(self.matches, pairwise(orders), strict=True)
        )
        return RingArrivals(times, matches)

    @property
    def ways(self) -> int:
        """The number of streams."""
        return len(self.times)

    def order(self, stream: int) -> list[tuple[int, int]]:
        """Return the probing order of a stream's rows: each stream visited, and the one whose row decides about a
        match."""
        after = [(other, other - 1) for other in range(stream + 1, self.ways)]
        return after + [(other, other + 1) for other in range(stream - 1, -1, -1)]

    def orders(self) -> list[list[int]]:
        """List the streams as the rows of each visit them, their own first."""
        return [[start, *(other for other, _ in self.order(start))] for start in range(self.ways)]

    def matching(self, row: Row, stream: int, low: int, high: int) -> Words:
        """Find the rows of a neighbouring stream, by number, that match a row."""
        of, number = row
        found = self.matches[of][number, low:high] if of < stream else self.matches[stream][low:high, number]
        return found.nonzero()[0] + low


@dataclass(frozen=True)
class Message:
    """What travels: a row that is kept on, a probe (a row or a partial result), or the END of a round."""

    kind: str
    cycle: int
    rows: tuple[Row, ...] = ()
    origin: int = 0
    round: int = 0


@dataclass
class ClusterNode:
    """A node's slices: of each stream the rows from `low` to `high`; those before `moved` are further on as well."""

    low: list[int]
    moved: list[int]
    high: list[int]
    free: float = 0.0
    marks: dict[int, float] = field(default_factory=dict)


@dataclass
class RingCounts:
    """What a ring did: results with latencies and nodes, and for each row read in the pairs compared and tuples sent.

    `compared_at` has the pairs of each row read in by node, `visits` at how many nodes it or a partial result probed.
    `inserted` and `purged` are how often a row was put into a node's state and taken out of one, `heads` has for each
    row read in how many nodes were the head of a cycle under way. `violations` are the moments at which a lemma or a
    theorem of chapter 12 did not hold, by its name; `finished` is when the last node had nothing to do any more.
    """

    results: list[tuple[Row, ...]] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)
    compared: dict[int, int] = field(default_factory=dict)
    compared_at: dict[tuple[int, int], int] = field(default_factory=dict)
    visits: dict[int, int] = field(default_factory=dict)
    sent: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    state_rows: list[int] = field(default_factory=list)
    inserted: int = 0
    purged: int = 0
    heads: list[int] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    finished: float = 0.0

    def met(self, cycle: int, node: int, pairs: int) -> None:
        """Count a visit at a node, and the pairs that it compares there."""
        self.visits[cycle] = self.visits.get(cycle, 0) + 1
        self.compared[cycle] += pairs
        self.compared_at[cycle, node] = self.compared_at.get((cycle, node), 0) + pairs

    def idle(self, costs: RingCosts, nodes: int) -> float:
        """Compute the share of the nodes' time, until the last of them has finished, in which they wait."""
        joining = costs.join * sum(self.compared.values()) + costs.send * sum(self.sent.values())
        keeping = costs.insert * self.inserted + costs.purge * self.purged
        return 1 - (joining + keeping) / (nodes * self.finished)


@dataclass(eq=False)
class RingCluster:
    """A ring of so many nodes over arrivals; windows are equal, in seconds, and strict as in the dissertation.

    One row after another is processed (PSP), or up to `concurrent` at once with marks and delayed purge (PSP-I). Rows
    before `begin` are taken to have come: they lie in the slices that their ages say. Rows are read in when they come,
    or, where they are `queued`, as soon as the head is free: it is never idle then, as Eq. 13.4 has it.
    """

    arrivals: RingArrivals
    window: float
    nodes: int
    costs: RingCosts
    _: KW_ONLY
    begin: float = 0.0
    concurrent: int = 0
    queued: bool = False

    def __post_init__(self) -> None:
        times, begin = self.arrivals.times, self.begin
        self.ends = [self.window * (at + 1) / self.nodes for at in range(self.nodes)]
        self.counts = RingCounts()
        self._orders = [self.arrivals.order(stream) for stream in range(self.arrivals.ways)]
        self._spans: dict[tuple[int, int, int], tuple[int, int]] = {}
        self._waiting = self.arrivals.since(begin)[::-1]
        self._at = self._sliced(begin, [int(np.searchsorted(found, begin, "left")) for found in times])
        self._events: list[tuple[float, int, int, Message]] = []
        self._sequence = 0
        self._read: dict[int, tuple[Row, float]] = {}
        self._under_way: dict[int, int] = {}
        self._last_round: dict[int, int] = {}
        self._heads: dict[int, int] = {}
        self._cycles = set[int]()
        self._begun = 0.0

    def run(self) -> RingCounts:
        """Process every arrival, and return what was done."""
        for _ in range(max(self.concurrent, 1)):
            self._admit(0.0)
        while self._events:
            time, _, node, message = heappop(self._events)
            self._under_way[message.cycle] -= 1
            at = self._at[node]
            at.free = max(time, at.free)
            if message.kind == "row":
                self._keep(at, message)
            elif message.kind == "END":
                self._end(node, message)
            else:
                self._probe(node, message)
        self.counts.finished = max(at.free for at in self._at)
        return self.counts

    def _sliced(self, moment: float, come: list[int]) -> list[ClusterNode]:
        # The ages of rows at the moment decide, where so many rows of each stream have come.
        at, high = [], come
        for end in self.ends:
            low = [int(np.searchsorted(times, moment - end, "right")) for times in self.arrivals.times]
            at.append(ClusterNode(low, list(low), high))
            high = list(low)
        return at

    def _admit(self, now: float) -> None:
        if not self._waiting:
            return
        time, stream, number = self._waiting.pop()
        cycle, row = len(self._read), (stream, number)
        # Rows are read in in order, also where their heads are different nodes.
        self._begun = begin = max(now if self.queued else max(now, time), self._begun)
        self._read[cycle] = row, begin
        self.counts.compared[cycle] = self.counts.sent[cycle] = self.counts.ends[cycle] = 0
        self._under_way[cycle] = self._last_round[cycle] = 0
        self._heads[cycle] = self._head_of(time)
        self._cycles.add(cycle)
        self.counts.heads.append(len({self._heads[one] for one in self._cycles}))
        self._schedule(begin, self._heads[cycle], Message("probe", cycle, (row,)))

    def _head_of(self, time: float) -> int:
        # Of a static ring the first node is the head, whatever the time.
        return 0

    def _place(self, node: int, cycle: int) -> int:
        # How far behind the head of the cycle a node is.
        return (node - self._heads[cycle]) % self.nodes

    def _schedule(self, time: float, node: int, message: Message) -> None:
        self._under_way[message.cycle] += 1
        heappush(self._events, (time, self._sequence, node, message))
        self._sequence += 1

    def _send(self, node: int, message: Message) -> None:
        at = self._at[node]
        at.free += self.costs.send
        self.counts.sent[message.cycle] += 1
        self._schedule(at.free + self.costs.hop, (node + 1) % self.nodes, message)

    def _keep(self, at: ClusterNode, message: Message) -> None:
        ((stream, number),) = message.rows
        if at.low[stream] == at.high[stream]:
            at.low[stream] = at.moved[stream] = number
        elif at.high[stream] != number:
            self.counts.violations.append("rows out of order")
        at.high[stream] = number + 1
        at.free += self.costs.insert
        self.counts.inserted += 1

    def _probe(self, node: int, message: Message) -> None:
        # Steps 1 to 3 of Fig. 12.3: insert at the head, purge, propagate, probe.
        cycle, fresh, at = message.cycle, len(message.rows) == 1, self._at[node]
        place, (row, _) = self._place(node, cycle), self._read[cycle]
        if fresh:
            if place == 0:
                self._keep(at, Message("row", cycle, (row,)))
            self._purge(node, cycle)
            if place < self.nodes - 1:
                self._send(node, message)
        else:
            if place == 0 and message.round <= self._last_round[cycle]:
                self.counts.violations.append("Lemma 8")
            if message.origin != node:
                self._send(node, message)
        for rows in self._found(node, message):
            if len(rows) == self.arrivals.ways:
                self.counts.results.append(rows)
                self.counts.latencies.append(at.free - self._read[cycle][1])
                self.counts.nodes.append(node)
            else:
                self._send(node, Message("partial", cycle, rows, node, len(rows) - 1))
        if fresh and place == 0:
            self._next_round(cycle, 1)

    def _found(self, node: int, message: Message) -> list[tuple[Row, ...]]:
        at, (row, _) = self._at[node], self._read[message.cycle]
        stream, _ = self._orders[row[0]][len(message.rows) - 1]
        place = message.cycle, node, stream
        if place not in self._spans:
            self._spans[place] = self._slice(node, stream, self.arrivals.times[row[0]][row[1]])
        low, high = self._spans[place]
        if low < high and not (at.low[stream] <= low and high <= at.high[stream]):
            self.counts.violations.append("Lemma 7")
        if not self.concurrent and (at.high[stream] - at.low[stream]) != high - low:
            self.counts.violations.append("Lemma 7")
        self.counts.met(message.cycle, node, high - low)
        return self._compared(at, message, (low, high))

    def _compared(self, at: ClusterNode, message: Message, span: tuple[int, int]) -> list[tuple[Row, ...]]:
        # Rows are compared by number.
        stream, by = self._orders[message.rows[0][0]][len(message.rows) - 1]
        at.free += self.costs.join * (span[1] - span[0])
        decisive = next(found for found in message.rows if found[0] == by)
        numbers = self.arrivals.matching(decisive, stream, *span).tolist()
        return [(*message.rows, (stream, number)) for number in numbers]

    def _slice(self, node: int, stream: int, time: float) -> tuple[int, int]:
        times = self.arrivals.times[stream]
        age = self.ends[node - 1] if node else 0.0
        low = int(np.searchsorted(times, time - self.ends[node], "right"))
        return low, int(np.searchsorted(times, time - age, "right" if node else "left"))

    def _purge(self, node: int, cycle: int) -> None:
        # Cross-purge: rows of the other streams that have outgrown the slice go to the next node, or out.
        at, (row, _) = self._at[node], self._read[cycle]
        now = float(self.arrivals.times[row[0]][row[1]])
        if self.concurrent:
            at.marks[cycle] = now
        for stream, times in enumerate(self.arrivals.times):
            if stream == row[0]:
                continue
            outgrown = int(np.searchsorted(times, now - self.ends[node], "right"))
            self._move_on(node, cycle, stream, outgrown)

    def _move_on(self, node: int, cycle: int, stream: int, outgrown: int) -> None:
        # From the last node rows leave the ring.
        at = self._at[node]
        for number in range(at.moved[stream], min(outgrown, at.high[stream])):
            at.free += self.costs.purge
            self.counts.purged += 1
            at.moved[stream] = number + 1
            if node < self.nodes - 1:
                self._send(node, Message("row", cycle, ((stream, number),)))
        if not self.concurrent:
            at.low[stream] = at.moved[stream]

    def _end(self, node: int, message: Message) -> None:
        last = message.round == self.arrivals.ways - 1
        if last and self.concurrent:
            self._expire(node, message.cycle)
        if self._place(node, message.cycle):
            self._send(node, message)
            return
        self.counts.ends[message.cycle] += 1
        self._last_round[message.cycle] = message.round
        if not last:
            self._next_round(message.cycle, message.round + 1)
            return
        if self._under_way[message.cycle]:
            self.counts.violations.append("Theorem 7")
        self.counts.state_rows.append(self._rows())
        self._cycles.discard(message.cycle)
        self._admit(self._at[node].free)

    def _rows(self) -> int:
        return sum(sum(at.high) - sum(at.low) for at in self._at)

    def _next_round(self, cycle: int, round_: int) -> None:
        # A ring of one node sends the END to itself.
        self._send(self._heads[cycle], Message("END", cycle, round=round_))

    def _expire(self, node: int, cycle: int) -> None:
        # Rows stay that another cycle under way still looks for (Fig. 12.5).
        at = self._at[node]
        mine = at.marks.pop(cycle)
        oldest = min(at.marks.values(), default=mine)
        for stream, times in enumerate(self.arrivals.times):
            free = int(np.searchsorted(times, oldest - self.ends[node], "right"))
            at.low[stream] = max(at.low[stream], min(free, at.moved[stream]))


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
