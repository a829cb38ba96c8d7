"""Wang §15.2: a ring whose rows are processed in other orders than those of their times. The section has no figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import PANEL, draw_bars
from midstream.lab.figure import Canvas, Claim, Scale, Verdict
from midstream.lab.ring_cluster import Message, RingArrivals, RingCluster, Row
from midstream.lab.ring_figures import CASE, OfRing, listed, values
from midstream.lab.ring_settings import costs
from midstream.lab.tidy import cases


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


SOURCE = "Wang §15.2"
LEMMA_15_1 = Claim("Lemma 15.1: with lazy purge the result is complete in semi-ordered execution.", SOURCE)
LAZY = Claim("Without lazy purge, semi-ordered execution misses results.", SOURCE)
UNORDERED = Claim("Unordered execution cannot guarantee a complete result.", SOURCE)
LEMMA_15_2 = Claim(
    "Lemma 15.2: of two results of an operator, the one that comes first has an older component.", SOURCE
)

WINDOW, RATE, SELECTIVITY = 4.0, 2.0, 0.4
RINGS = {f"{ways} streams, {nodes} node{'s' * (nodes > 1)}": (ways, nodes) for ways in (2, 3) for nodes in (1, 4)}
PURGES = {"eager": False, "lazy": True}
RESULTS, MISSING, TWICE, MISORDERED = "results", "missing results", "results twice", "pairs against Lemma 15.2"


class Wang1502(OfRing):
    """Each order with each purge, over the same rows; what the join is was found in total order."""

    name: ClassVar[str] = "wang_15_02"
    title: ClassVar[str] = "execution orders and lazy purge"
    source: ClassVar[str] = SOURCE
    spreadings: ClassVar[frozenset[str]] = frozenset({"psp"})
    setting: ClassVar[str] = (
        "The ring tuple at a time on a virtual cluster, two and three streams of 2 rows a second, windows of 4 s, "
        "selectivity 0.4, small join. Semi-ordered: the streams' rows are shuffled, each stream's stay in their order; "
        "unordered: those too. Quick: 10 s of 3 draws, otherwise of 20. A ring in total order gives the results to "
        "compare with, which the tests check against the join's definition. Pairs against Lemma 15.2 are counted at "
        "each node by itself."
    )

    @override
    def runs(self, scale: Scale) -> Iterator[dict[str, Any]]:
        draws = range(scale.pick(quick=3, full=20))
        for panel, (ways, nodes) in RINGS.items():
            for execution in Execution:
                for purge in PURGES:
                    found = [_run(ways, nodes, execution, purge, seed) for seed in draws]
                    yield {
                        PANEL: panel,
                        CASE: f"{execution.value}, {purge}",
                        **{name: sum(counted[name] for counted in found) for name in found[0]},
                    }

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        def of(name: str, case: str) -> dict[str, int]:
            return {panel: int(found) for (panel, at), found in values(data, name).items() if at == case}

        lazy, eager, total = "semi-ordered, lazy", "semi-ordered, eager", "totally ordered, eager"
        results, missing, twice = of(RESULTS, total), of(MISSING, lazy), of(TWICE, lazy)
        lost, unordered, misordered = of(MISSING, eager), of(MISSING, "unordered, lazy"), of(MISORDERED, lazy)
        return (
            LEMMA_15_1.judged(
                not any(missing.values()) and not any(twice.values()),
                f"missing: {listed(missing.items())}; twice: {listed(twice.items())}; of {listed(results.items())}",
                "results are missing or come twice",
            ),
            LAZY.judged(
                any(lost.values()),
                f"missing: {listed(lost.items())}; of {listed(results.items())} (of two streams a row is purged by "
                "one other alone: there lazy purge is purge)",
                "none is missing",
            ),
            UNORDERED.judged(
                all(unordered.values()),
                f"missing with lazy purge: {listed(unordered.items())}; of {listed(results.items())}",
                "none is missing",
            ),
            LEMMA_15_2.judged(
                not any(misordered.values()),
                f"pairs against it: {listed(misordered.items())}",
                "with three streams and several nodes an operator's partial results come from other nodes, those of "
                "younger slices first: the proof's second case takes them to come in order of time",
            ),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        for axes in draw_bars(canvas, data, (MISSING, MISORDERED), columns=3):
            axes.set_yscale("symlog")
            axes.set_xticks(range(len(RINGS)), [panel.replace(", ", "\n") for panel in cases(data, PANEL)])


def _run(ways: int, nodes: int, execution: Execution, purge: str, seed: int) -> dict[str, int]:
    drawn = RingArrivals.drawn(ways, RATE, SELECTIVITY, 10.0, seed)
    arrivals, order = execution.drawn(drawn, seed)
    counts = OrderedRing(arrivals, WINDOW, nodes, costs("small join"), order=order, lazy=PURGES[purge]).run()
    _, by_time = Execution.TOTAL.drawn(drawn, seed)
    join = OrderedRing(drawn, WINDOW, 1, costs("small join"), order=by_time, lazy=False).run().results
    by_node = [[rows for rows, at in zip(counts.results, counts.nodes, strict=True) if at == n] for n in range(nodes)]
    return {
        RESULTS: len(join),
        MISSING: len(join) - len(set(map(frozenset, counts.results))),
        TWICE: len(counts.results) - len(set(map(frozenset, counts.results))),
        MISORDERED: sum(out_of_order(arrivals, results) for results in by_node if results),
    }
