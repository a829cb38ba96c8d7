"""What a ring costs and how long it should be (Wang ch. 13: Eq. 13.1-13.5, Theorem 9).

Differs from Eq. 13.1 as printed, which multiplies by the selectivity of a probing step one step too early: so counted,
Eq. 13.2 would not follow from it. Here a step is charged for the pairs it compares, and Eq. 13.2 holds exactly except
for the insertion and the purge of the row itself.

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
        """Build the load of streams of equal rate, window and selectivity, as Eq. 13.2 assumes."""
        return RingLoad((ProbingStep(rows, selectivity),) * (ways - 1))

    @property
    def ways(self) -> int:
        """M, the number of streams that are joined."""
        return len(self.steps) + 1

    @property
    def compared(self) -> float:
        """The pairs compared for one row, over all steps."""
        return sum(partials * step.rows for partials, step in zip(self.partials, self.steps, strict=True))

    @property
    def sent(self) -> float:
        """The rows sent once round the ring for one row: itself, and its partial results except the complete ones."""
        return sum(self.partials)

    @property
    def partials(self) -> list[float]:
        """The partial results with which each step begins: the row itself, and what it has joined."""
        return _partials(self.steps)


def result_latency(load: RingLoad, costs: RingCosts, nodes: int | Sequence[int]) -> float:
    """Estimate the mean time from a row to one of its results, with the load balanced.

    A result has come half round the ring for each step of the order (§12.2.2), and has waited for its share of a node's
    work: all steps before the last, and half of the last one, along which results come out evenly. `nodes` is the
    length of the ring, or one for the stream that each step visits.
    """
    lengths = [nodes] * len(load.steps) if isinstance(nodes, int) else nodes
    way = sum(length - 1 for length in lengths) / 2 * (costs.hop + costs.send)
    shares = [work / length for work, length in zip(_compared_for_a_result(load), lengths, strict=True)]
    working = (costs.insert + costs.purge) / max(lengths) + costs.join * sum(shares)
    return way + working + costs.send * sum(_partials_of_a_result(load.steps))


def length(load: RingLoad, costs: RingCosts, most: int) -> int:
    """Compute how many of at most `most` nodes a ring should have for the least `result_latency`.

    That is sqrt(2 L / ((M - 1) (T_n + T_s))), or a whole number next to it, where L is the work before a result.

    >>> length(RingLoad.alike(3, 50, 0.1), RingCosts(join=1.0, hop=1.0), most=100)
    14
    """
    check_network(costs)
    found = sqrt(2 * _before_a_result(load, costs) / ((load.ways - 1) * (costs.hop + costs.send)))
    around = {min(max(nodes, 1), most) for nodes in (floor(found), ceil(found))}
    return min(sorted(around), key=lambda nodes: result_latency(load, costs, nodes))


def _before_a_result(load: RingLoad, costs: RingCosts) -> float:
    # What one node would do for a row, on average over results, before a result comes out.
    return costs.insert + costs.purge + costs.join * sum(_compared_for_a_result(load))


def _compared_for_a_result(load: RingLoad) -> list[float]:
    # By step; results come out all along the last one.
    work = [count * step.rows for count, step in zip(_partials_of_a_result(load.steps), load.steps, strict=True)]
    return [*work[:-1], work[-1] / 2]


def check_network(costs: RingCosts) -> None:
    """Raise a `PlanError` if a hop costs nothing, because no ring is too long then."""
    if costs.hop <= 0:
        raise PlanError("the network cost of a hop must be above 0", place="T_n", remedy="measure it")


def _partials(steps: Sequence[ProbingStep], certain: int = 0) -> list[float]:
    # The number of partial results with which each step begins: those expected, and those that exist in any case.
    found = [1.0]
    for step in steps[:-1]:
        found.append(certain + found[-1] * step.rows * step.selectivity)
    return found


def _partials_of_a_result(steps: Sequence[ProbingStep]) -> list[float]:
    # A result's own partial results come on top of those that are expected anyway.
    return _partials(steps, certain=1)
