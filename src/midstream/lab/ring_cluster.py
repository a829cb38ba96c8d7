"""The ring tuple at a time on a virtual cluster, by the protocol of Wang §12.2-12.4 (Figs. 12.3 and 12.5).

Each node takes what its one neighbour sends in order, and nothing but that order keeps the nodes in step: purged rows
travel ahead of the probe that purged them, a partial result ends its life where it was made, and END tuples close the
rounds of a cycle. Comparing a pair, sending a tuple and a hop of the network take virtual time.

Differs in that an END tuple carries no result: it follows the last one, and so there is one where nothing matched.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from heapq import heappop, heappush

import numpy as np

from midstream.lab.ring_arrivals import RingArrivals, Row
from midstream.ring.cost import RingCosts


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
