"""Wang Fig. 16.1: what a row costs in a ring, on the network and in probing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import named
from midstream.lab.figure import Canvas, Claim, Scale, Verdict
from midstream.lab.ring_figures import CASE, OfRing
from midstream.lab.ring_settings import HOP, JOINS, SEND, SETTING, arrivals, run
from midstream.lab.tidy import column

SOURCE = "Wang §16.2, Fig. 16.1"
NETWORK = Claim("The three runs differ from each other only in the join cost; the network cost is the same.", SOURCE)

NODES, SELECTIVITY = 4, 0.1
MEAN, DEVIATION, SENT = "cost of a row (ms)", "standard deviation (ms)", "tuples sent"
OVER = "network"


class Wang1601(OfRing):
    """Mean and deviation over the rows read in; complete results or none, all is counted."""

    name: ClassVar[str] = "wang_16_01"
    title: ClassVar[str] = "costs of a row in a ring of four nodes"
    source: ClassVar[str] = SOURCE
    spreadings: ClassVar[frozenset[str]] = frozenset({"psp"})
    setting: ClassVar[str] = (
        "The ring tuple at a time on a virtual cluster, selectivity 0.1. " + SETTING + "Quick: the rows of 1.5 s, "
        "otherwise of 10 s. Network: T_s + T_n for each tuple sent, END tuples and rows that move on included."
    )

    @override
    def runs(self, scale: Scale) -> Iterator[dict[str, Any]]:
        rows = arrivals(SELECTIVITY, scale)
        for number, (join, seconds) in enumerate(JOINS.items()):
            counts = run(rows, join, NODES)
            sent = np.array([*counts.sent.values()])
            if not number:
                yield _row(OVER, sent * (SEND + HOP), int(sent.sum()))
            yield _row(join, np.array([*counts.compared.values()]) * seconds, int(sent.sum()))

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        sent = column(data, SENT)
        costs = {str(case): float(cost) for case, cost in zip(data[CASE].to_pylist(), column(data, MEAN), strict=True)}
        return (
            NETWORK.judged(
                bool((sent == sent[0]).all()) and len(set(costs.values())) == len(costs),
                f"{', '.join(map(str, sent[1:]))} tuples sent; "
                + ", ".join(f"{case} {cost:.3g} ms a row" for case, cost in costs.items()),
                "the runs differ in what they send",
            ),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        axes = canvas.subplots()
        axes.bar(data[CASE].to_pylist(), column(data, MEAN), 0.6, yerr=column(data, DEVIATION), capsize=4)
        named(axes, "", MEAN)


def _row(case: str, costs: np.ndarray[tuple[int], np.dtype[np.float64]], sent: int) -> dict[str, Any]:
    return {CASE: case, MEAN: float(costs.mean()) * 1e3, DEVIATION: float(costs.std()) * 1e3, SENT: sent}
