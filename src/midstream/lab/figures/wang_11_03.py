"""Wang Fig. 11.3: pipelined and partitioned parallelism, of a join by one key and of one by two."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import PANEL, draw_bars
from midstream.lab.figure import Canvas, Claim, Scale, Verdict
from midstream.lab.ring_figures import CASE, PAIRS, RESULTS, SENT, OfRing, listed, steps_of_spread, values
from midstream.lab.ring_spread import SpreadStreams, spread
from midstream.ring.deployment import Deployment
from midstream.ring.spreading import spreadings

SOURCE = "Wang §11.2, Fig. 11.3"
SUBSETS = Claim("Partitioned: each copy of the join works on a subset of the data.", SOURCE)
SERIES = Claim("Pipelined: operators at different nodes work in series, one's output streamed into the next.", SOURCE)
AGGREGATED = Claim("Over several machines performance improves greatly, for CPU and memory add up.", SOURCE)

WINDOW, NODES, DOMAIN = 1_000_000, 4, 40
ONE_KEY, TWO_KEYS = "one key", "two keys"
QUERIES = {
    ONE_KEY: ({"B": "k", "A": "k", "C": "k"}, ("one_lane", "lanes", "hash_hops")),
    TWO_KEYS: ({"B": "kg", "A": "k", "C": "g"}, ("one_lane", "hash_hops")),
}
"""The key classes of each stream, and the spreadings that carry the join."""

BUSIEST = "pairs at the busiest node"


class Wang1103(OfRing):
    """Rows placed by hash: lanes where one key goes through all streams, else hops from key to key."""

    name: ClassVar[str] = "wang_11_03"
    title: ClassVar[str] = "partitioned and pipelined parallelism by hash"
    source: ClassVar[str] = SOURCE
    spreadings: ClassVar[frozenset[str]] = frozenset({"one_lane", "lanes", "hash_hops"})
    setting: ClassVar[str] = (
        "The ways of spreading a join by keys over four nodes, by the sets of rows and visits of each step: three "
        "streams of 50 rows in a window, keys of 40 values, a step is a tenth of a window. One key is A.k = B.k = C.k, "
        "two keys are A.k = B.k and B.g = C.g, which no lanes can carry. A node compares a partial result with every "
        "row of the stream that it keeps; the busiest node is that of each step. Sent is every row to its node, and "
        "every partial result to a node that it visits but its own. Quick: 5 windows, otherwise 30, after one that "
        "fills."
    )

    @override
    def runs(self, scale: Scale) -> Iterator[dict[str, Any]]:
        steps = steps_of_spread(scale)
        for panel, (classes, names) in QUERIES.items():
            streams = SpreadStreams.keyed(classes, 50, DOMAIN, WINDOW, steps, seed=11)
            placed_by = {label: keys[0] for label, keys in classes.items()}
            deployment = Deployment(dict.fromkeys(classes, WINDOW), NODES, placed_by=placed_by)
            for name in names:
                counts = spread(spreadings()[name], streams, deployment, steps)
                yield {
                    PANEL: panel,
                    CASE: name,
                    PAIRS: counts.compared,
                    BUSIEST: counts.busiest * counts.compared / NODES,
                    SENT: counts.sent,
                    RESULTS: counts.results,
                }

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        pairs, busiest, sent, results = (values(data, name) for name in (PAIRS, BUSIEST, SENT, RESULTS))
        alone, lanes, hops = (ONE_KEY, "one_lane"), (ONE_KEY, "lanes"), (TWO_KEYS, "hash_hops")
        spread_out = [at for at in pairs if at[1] != "one_lane"]
        return (
            SUBSETS.judged(
                sent[lanes] == sent[alone] and pairs[lanes] < pairs[alone] and results[lanes] == results[alone],
                f"{pairs[lanes]:,.0f} of {pairs[alone]:,.0f} pairs are compared; {sent[lanes]:,.0f} tuples are sent, "
                f"the rows are {sent[alone]:,.0f}",
                "partial results leave their node",
            ),
            SERIES.judged(
                sent[hops] > sent[TWO_KEYS, "one_lane"] and results[hops] == results[TWO_KEYS, "one_lane"],
                f"{sent[hops] - sent[TWO_KEYS, 'one_lane']:,.0f} partial results go from node to node, "
                f"{results[hops]:,.0f} results as at one node",
                "nothing goes from node to node",
            ),
            AGGREGATED.judged(
                all(busiest[at] < busiest[at[0], "one_lane"] / 2 for at in spread_out),
                "of one node's pairs, at the busiest one: "
                + listed((f"{panel}, {name}", busiest[panel, name] / busiest[panel, "one_lane"])
                         for panel, name in spread_out),
                "one node has most of the work",
            ),
        )  # fmt: skip

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        draw_bars(canvas, data, (PAIRS, BUSIEST, SENT))
