"""What a ring costs, and its length by Theorem 9 (Wang ch. 13: Eq. 13.1-13.5), as the dissertation has them.

`ring.cost` says where these differ from what the engine goes by.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, sqrt

from midstream.ring.cost import ProbingStep, RingCosts, RingLoad, check_network


def selected(load: RingLoad, shares: Sequence[float]) -> RingLoad:
    """Reduce the load to the shares of the states that selections pushed into the ring keep (Eq. 21.1).

    >>> selected(RingLoad((ProbingStep(50, 0.1), ProbingStep(50, 0.1))), [1.0, 0.5]).compared
    175.0
    """
    kept = zip(load.steps, shares, strict=True)
    return RingLoad(tuple(ProbingStep(step.rows * share, step.selectivity) for step, share in kept))


def central_workload(load: RingLoad, costs: RingCosts) -> float:
    """Compute L_C: the time that one node takes for one row (Eq. 13.1)."""
    return costs.insert + costs.purge + costs.join * load.compared


def ring_workload(load: RingLoad, costs: RingCosts, nodes: int) -> float:
    """Compute L_PSP: the time of all nodes for one row (Eq. 13.1), the inverse of the service rate (Eq. 13.3)."""
    return central_workload(load, costs) + costs.send * nodes * load.sent


def output_gain(load: RingLoad, costs: RingCosts, nodes: int) -> float:
    """Compute O_PSP / O_S: the output rate of a ring that is never idle over one node's (Eq. 13.4).

    >>> load = RingLoad.alike(3, 50, 0.1)
    >>> [round(output_gain(load, RingCosts(join=1e-3, send=1e-3), nodes), 3) for nodes in (1, 10, 100)]
    [0.98, 8.333, 33.333]
    """
    return nodes * central_workload(load, costs) / ring_workload(load, costs, nodes)


def latency(load: RingLoad, costs: RingCosts, nodes: int) -> float:
    """Compute the mean time from a row to its results, with the load balanced (Eq. 13.5).

    The nodes work while rows are on the way, so that the longer of both counts; and a row comes to the i-th node i - 1
    hops late.
    """
    working = ring_workload(load, costs, nodes) / nodes
    return (nodes - 1) / 2 * costs.hop + max(working, load.ways * nodes * costs.hop)


def best_length(load: RingLoad, costs: RingCosts) -> float:
    """Compute N of Theorem 9: min(N_1, N_2); at N_1 the nodes work as long as rows are on the way.

    N_2 has a row's way to the mean node be as long as the work of a node. That is at most one more than where the
    derivative of Eq. 13.5 is zero, sqrt(2 L_C / T_n), which is what "standard calculus" gives.

    >>> best_length(RingLoad.alike(3, 50, 0.1), RingCosts(join=1.0, hop=1.0))
    10.0
    """
    check_network(costs)
    central, sending = central_workload(load, costs), costs.send * load.sent
    # M T_n N^2 - sending N - L_C = 0, and T_n / 2 (N^2 - N) - L_C = 0.
    first = _positive_root(load.ways * costs.hop, sending, central)
    second = _positive_root(costs.hop / 2, costs.hop / 2, central)
    return min(first, second)


def theorem_9(load: RingLoad, costs: RingCosts) -> int:
    """Round Theorem 9 to a number of nodes: the neighbour of `best_length` of less latency by Eq. 13.5.

    >>> theorem_9(RingLoad.alike(3, 50, 0.1), RingCosts(join=1.0, hop=1.0))
    10
    """
    found = best_length(load, costs)
    around = (max(floor(found), 1), max(ceil(found), 1))
    return min(around, key=lambda nodes: latency(load, costs, nodes))


def _positive_root(a: float, b: float, c: float) -> float:
    # The N > 0 with a N^2 = b N + c.
    return (b + sqrt(b * b + 4 * a * c)) / (2 * a)
