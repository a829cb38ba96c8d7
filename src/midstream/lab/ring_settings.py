"""The experiments of ch. 16 on the ring and its rivals: what they have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from midstream.lab.figure import Scale
from midstream.lab.ring_cluster import RingArrivals, RingCluster, RingCounts
from midstream.lab.ring_routed import LABELS, MICROSECONDS, RoutedCluster
from midstream.ring.cost import RingCosts
from midstream.ring.deployment import Deployment
from midstream.ring.spreading import spreadings

WAYS, WINDOW, RATE = 3, 10.0, 5.0
"""The window is that of §16.2; the rate, in rows a second of each stream, is a tenth of it."""

SELECTIVITIES = (0.05, 0.1, 0.5)

JOINS: Mapping[str, float] = {"small join": 5e-6, "middle join": 10e-6, "large join": 20e-6}
"""T_j in seconds: as images of 5k, 10k and 20k pixels have it, 1 : 2 : 4."""

LENGTHS = (4, 7, 10, 13, 16, 19)
"""Of rings that are compared with one another; the paper has 4 to 19 nodes."""

LONGEST_SEGMENT = 50.0
"""In seconds; the paper's are 10 to 50 s."""

SEND, HOP = 5e-6, 50e-6
"""T_s and T_n in seconds."""

MOST_NODES = 19

SETTING = (
    "Three streams of 5 rows a second each (a tenth of the paper's), windows of 10 s, full at the beginning, "
    "Poisson arrivals and random predicates, one row after another; T_j 5, 10 and 20 us, T_s 5 us, T_n 50 us, which "
    "the text does not say. "
)


def costs(join: str) -> RingCosts:
    """Return the costs of operations with a join of this name."""
    return RingCosts(join=JOINS[join], send=SEND, hop=HOP)


def arrivals(selectivity: float, scale: Scale, *, ways: int = WAYS, draw: int = 0) -> RingArrivals:
    """Draw rows that fill the windows, and some seconds more, which are measured; each draw has others."""
    seconds = WINDOW + scale.pick(quick=1.5, full=10.0)
    return RingArrivals.drawn(ways, RATE, selectivity, seconds, seed=16 + draw)


def draws(selectivity: float, scale: Scale, count: int = 4) -> list[RingArrivals]:
    """Draw such rows `count` times, other ones each time."""
    return [arrivals(selectivity, scale, draw=draw) for draw in range(count)]


def run(rows: RingArrivals, join: str, nodes: int, *, concurrent: int = 0, queued: bool = False) -> RingCounts:
    """Run a ring of `nodes` nodes over rows, from full windows on."""
    ring = RingCluster(rows, WINDOW, nodes, costs(join), begin=WINDOW, concurrent=concurrent, queued=queued)
    return ring.run()


def routed(name: str, join: str, nodes: int, drawn: Sequence[RingArrivals], **deployed: Any) -> RingCounts:
    """Run a spreading whose rows are never moved, from full windows on; the middle stream is the master.

    The n-th draw comes n quarters of the longest segment later, for segments begin at fixed times.
    """
    windows = dict.fromkeys(LABELS[:WAYS], round(WINDOW * MICROSECONDS))
    deployment = Deployment(windows, nodes, master=LABELS[WAYS // 2], **deployed)
    spreading = spreadings()[name]
    spreading.check(deployment, [[LABELS[at] for at in order] for order in drawn[0].orders()])
    found = []
    for number, rows in enumerate(drawn):
        later = number * LONGEST_SEGMENT / len(drawn)
        found.append(RoutedCluster(spreading, deployment, rows.later(later), costs(join), begin=WINDOW + later).run())
    return merged(found)


def merged(runs: Iterable[RingCounts]) -> RingCounts:
    """Merge several runs: what was seen at the ends of cycles, and the latencies of all results."""
    found = RingCounts()
    for counts in runs:
        found.latencies += counts.latencies
        found.state_rows += counts.state_rows
    return found
