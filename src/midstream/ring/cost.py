"""What a ring costs and how long it should be (Wang ch. 13: Eq. 13.1-13.5, Theorem 9).

Differs from Eq. 13.1 as printed, which multiplies by the selectivity of a probing step one step too early: so counted,
Eq. 13.2 would not follow from it. Here a step is charged for the pairs it compares, and Eq. 13.2 holds exactly but for
the insertion and the purge of the row itself.

Differs from Theorem 9, too, in what `length` minimises. Eq. 13.5 has every result wait for all the work of a node and
for M rounds of the ring, though a cycle has M - 1 (Theorem 7) and results come out all along the last of them. Nor does
it see that most results are those of rows that match much. Its rings are too short therefore (the lab's Fig. 16.2);
`result_latency` is the mean over results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, sqrt

from midstream.model.errors import PlanError


@dataclass(frozen=True)
class RingCosts:
    """Seconds that operations take, by Table 13.1: T_j, T_p, T_i, T_s and T_n.

    `join` is a pair compared, `purge` and `insert` a row taken out of a state or put into it, `send` a row sent and
    received, `hop` the latency of the network from node to node.
    """

    join: float
    purge: float = 0.0
    insert: float = 0.0
    send: float = 0.0
    hop: float = 0.0


@dataclass(frozen=True)
class ProbingStep:
    """A visit of a probing order: the rows in the state visited (lambda_i W_i), and the share of pairs that match."""

    rows: float
    selectivity: float


@dataclass(frozen=True)
class RingLoad:
    """What one row does along its probing order, one step for each stream but its own.

    >>> alike = RingLoad((ProbingStep(50, 0.1), ProbingStep(50, 0.1)))
    >>> alike.ways, alike.compared, alike.sent
    (3, 300.0, 6.0)
    """

    steps: tuple[ProbingStep, ...]

    @staticmethod
    def alike(ways: int, rows: float, selectivity: float) -> RingLoad:
        """Streams of equal rate, window and selectivity, as Eq. 13.2 assumes."""
        return RingLoad((ProbingStep(rows, selectivity),) * (ways - 1))

    def selected(self, shares: Sequence[float]) -> RingLoad:
        """The load where selections pushed into the ring keep only these shares of the states (Eq. 21.1).

        >>> RingLoad((ProbingStep(50, 0.1), ProbingStep(50, 0.1))).selected([1.0, 0.5]).compared
        175.0
        """
        kept = zip(self.steps, shares, strict=True)
        return RingLoad(tuple(ProbingStep(step.rows * share, step.selectivity) for step, share in kept))

    @property
    def ways(self) -> int:
        """M, the streams that are joined."""
        return len(self.steps) + 1

    @property
    def compared(self) -> float:
        """Pairs compared for one row, over all steps."""
        return sum(partials * step.rows for partials, step in zip(_partials(self.steps), self.steps, strict=True))

    @property
    def sent(self) -> float:
        """What goes once round the ring for one row: the row, and its partial results but for the complete ones."""
        return sum(_partials(self.steps))


def central_workload(load: RingLoad, costs: RingCosts) -> float:
    """L_C: the time that one node takes for one row (Eq. 13.1)."""
    return costs.insert + costs.purge + costs.join * load.compared


def ring_workload(load: RingLoad, costs: RingCosts, nodes: int) -> float:
    """L_PSP: the time that all nodes take for one row (Eq. 13.1); its inverse is the service rate (Eq. 13.3)."""
    return central_workload(load, costs) + costs.send * nodes * load.sent


def output_gain(load: RingLoad, costs: RingCosts, nodes: int) -> float:
    """O_PSP / O_S: how many times the output rate of one node a ring has whose nodes are never idle (Eq. 13.4).

    >>> load = RingLoad.alike(3, 50, 0.1)
    >>> [round(output_gain(load, RingCosts(join=1e-3, send=1e-3), nodes), 3) for nodes in (1, 10, 100)]
    [0.98, 8.333, 33.333]
    """
    return nodes * central_workload(load, costs) / ring_workload(load, costs, nodes)


def latency(load: RingLoad, costs: RingCosts, nodes: int) -> float:
    """The mean time from a row to its results, with the load balanced (Eq. 13.5).

    The nodes work while rows are on the way, so that the longer of both counts; and a row comes to the i-th node i - 1
    hops late.
    """
    working = ring_workload(load, costs, nodes) / nodes
    return (nodes - 1) / 2 * costs.hop + max(working, load.ways * nodes * costs.hop)


def best_length(load: RingLoad, costs: RingCosts) -> float:
    """N of Theorem 9: min(N_1, N_2), of which N_1 has the nodes work as long as rows are on the way.

    N_2 has a row's way to the mean node be as long as the work of a node. That is at most one more than where the
    derivative of Eq. 13.5 is zero, sqrt(2 L_C / T_n), which is what "standard calculus" gives.

    >>> best_length(RingLoad.alike(3, 50, 0.1), RingCosts(join=1.0, hop=1.0))
    10.0
    """
    _check_network(costs)
    central, sending = central_workload(load, costs), costs.send * load.sent
    # M T_n N^2 - sending N - L_C = 0, and T_n / 2 (N^2 - N) - L_C = 0.
    first = _positive_root(load.ways * costs.hop, sending, central)
    second = _positive_root(costs.hop / 2, costs.hop / 2, central)
    return min(first, second)


def theorem_9(load: RingLoad, costs: RingCosts) -> int:
    """The length of Theorem 9 as a number of nodes: of those around `best_length` the one of less latency by Eq. 13.5.

    >>> theorem_9(RingLoad.alike(3, 50, 0.1), RingCosts(join=1.0, hop=1.0))
    10
    """
    found = best_length(load, costs)
    around = (max(floor(found), 1), max(ceil(found), 1))
    return min(around, key=lambda nodes: latency(load, costs, nodes))


def result_latency(load: RingLoad, costs: RingCosts, nodes: int) -> float:
    """The mean time from a row to one of its results, with the load balanced.

    A result has come half round the ring for each step of the order (§12.2.2), and has waited for its share of a
    node's work: all steps before the last, and half of the last one, along which results come out evenly.
    """
    way = (load.ways - 1) * (nodes - 1) / 2 * (costs.hop + costs.send)
    return way + _before_a_result(load, costs) / nodes + costs.send * sum(_partials_of_a_result(load.steps))


def length(load: RingLoad, costs: RingCosts, most: int) -> int:
    """How many of at most `most` nodes a ring should have for the least `result_latency`.

    That is sqrt(2 L / ((M - 1) (T_n + T_s))), or a whole number beside it, where L is the work before a result.

    >>> length(RingLoad.alike(3, 50, 0.1), RingCosts(join=1.0, hop=1.0), most=100)
    14
    """
    _check_network(costs)
    found = sqrt(2 * _before_a_result(load, costs) / ((load.ways - 1) * (costs.hop + costs.send)))
    around = {min(max(nodes, 1), most) for nodes in (floor(found), ceil(found))}
    return min(sorted(around), key=lambda nodes: result_latency(load, costs, nodes))


def _before_a_result(load: RingLoad, costs: RingCosts) -> float:
    """What one node would do for a row, on average over results, before a result comes out."""
    work = [count * step.rows for count, step in zip(_partials_of_a_result(load.steps), load.steps, strict=True)]
    return costs.insert + costs.purge + costs.join * (sum(work) - work[-1] / 2)


def _check_network(costs: RingCosts) -> None:
    if costs.hop <= 0:
        raise PlanError("the network takes no time", place="T_n", remedy="measure it: without it no ring is too long")


def _partials(steps: Sequence[ProbingStep], certain: int = 0) -> list[float]:
    """With how many partial results each step begins: those expected, and so many that are there in any case."""
    found = [1.0]
    for step in steps[:-1]:
        found.append(certain + found[-1] * step.rows * step.selectivity)
    return found


def _partials_of_a_result(steps: Sequence[ProbingStep]) -> list[float]:
    """The same where there is a result: its own beside those expected anyway."""
    return _partials(steps, certain=1)


def _positive_root(a: float, b: float, c: float) -> float:
    """The N > 0 with a N^2 = b N + c."""
    return (b + sqrt(b * b + 4 * a * c)) / (2 * a)
