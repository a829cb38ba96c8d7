"""What one operation of the join kernel costs, in nanoseconds and bytes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Quantity = TypeVar("Quantity", float, npt.NDArray[np.float64])
"""A number, or one for each of many joins at once."""

SIGNIFICANT = 40  # bits of a cost that are compared: twelve digits


def comparable(costs: Quantity) -> Quantity:
    """Round costs to ignore their last bits: equal sums in another order are then equal.

    >>> bool(comparable(0.1 + 0.2) == comparable(0.3))
    True
    """
    fraction, exponent = np.frexp(costs)
    rounded: Quantity = np.ldexp(np.round(np.ldexp(fraction, SIGNIFICANT)), exponent - SIGNIFICANT)
    return rounded


@dataclass(frozen=True)
class JoinUnitCosts:
    """Nanoseconds for one of each, and bytes for what stays.

    `comparison` a candidate pair, `result` a row that a join gives out, `insert` a row that goes into a state, `probe`
    a row that looks for partners in a state, `route` a row that an eddy sends on, `operator_step` an operator in a
    step, whatever flows. A state over k sources takes `row_bytes` and k times `reference_bytes` for each row.

    The defaults are of the right order for a slow core; `midstream calibrate` measures a machine.
    """

    comparison: float = 20.0
    result: float = 60.0
    insert: float = 150.0
    probe: float = 250.0
    route: float = 400.0
    operator_step: float = 300_000.0
    row_bytes: float = 24.0
    reference_bytes: float = 8.0

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) >= 0:
                raise ValueError(f"{field.name} must be a number of at least 0, not {getattr(self, field.name)}")

    def joining(self, probes: Quantity, comparisons: Quantity, results: Quantity) -> Quantity:
        """Compute the nanoseconds of a join from its counts, without keeping its output.

        >>> JoinUnitCosts(probe=3, comparison=1, result=2).joining(10.0, 100.0, 5.0)
        140.0
        """
        return self.probe * probes + self.comparison * comparisons + self.result * results

    def bytes_of(self, rows: Quantity, sources: Quantity) -> Quantity:
        """Compute the bytes of a state from its rows and the number of its sources.

        >>> JoinUnitCosts(row_bytes=24, reference_bytes=8).bytes_of(10.0, 2.0)
        400.0
        """
        return self.row_bytes * rows + self.reference_bytes * sources * rows


@dataclass(frozen=True)
class CostWeights:
    """What counts: each nanosecond of work a second, and each byte of state, as so many nanoseconds a second.

    >>> CostWeights(work=1.0, memory=0.5).value(work=100.0, memory=8.0)
    104.0
    """

    work: float = 1.0
    memory: float = 0.0

    def __post_init__(self) -> None:
        if not (self.work >= 0 and self.memory >= 0 and self.work + self.memory > 0):
            raise ValueError("weights must be numbers of at least 0, and not both 0")

    def value(self, work: Quantity, memory: Quantity) -> Quantity:
        """Combine work and memory into the value that plans are compared by: less is better."""
        return self.work * work + self.memory * memory


PLAN_OBJECTIVES = {
    "latency": CostWeights(work=1.0, memory=0.0),
    "work": CostWeights(work=1.0, memory=0.0),
    "memory": CostWeights(work=1e-6, memory=1.0),
}
"""The weights of each objective; results wait for the work of their step, so latency is work."""
