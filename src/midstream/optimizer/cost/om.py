"""OM's cost functions (OM §3.2 and §4.1): output rate, rows in buffers, and their weighted sum.

Names are the paper's: sel, lambda and tpr are an operator's selectivity, input arrival rate and tuple processing rate,
W the window, C_r and C_m a plan's output rate and memory utilization.

The example of §3.2 (Fig. 2) does not follow §4.1 to the letter. Its output rates are bounded by what an operator can
process, sel min(lambda, tpr), where §4.1 has sel lambda; and its memory is the input of one window and every
operator's output as if nothing were slow, where §4.1 lets the input queue while an operator works. `Queueing` has
both: `EXAMPLE` gives the paper's numbers, `SECTION_4_1` its formulas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from midstream.optimizer.cost.units import Quantity


class Queueing(Enum):
    """Which of the paper's two ways counts rates and buffers."""

    SECTION_4_1 = "4.1"
    EXAMPLE = "3.2"


JOIN_TPR = 3e3  # rows a second that an equi-join processes in the paper's experiments (§5.1)


@dataclass(frozen=True)
class OmWeights:
    """w_r and w_m; the paper's experiments take 0.4 and 0.6 (§5.1)."""

    w_r: float = 0.4
    w_m: float = 0.6


@dataclass(frozen=True)
class OmOperator:
    """A selection, a projection (`sel` is 1) or an aggregate over one stream: what it lets through, and how fast.

    `width` is not the paper's, which counts tuples: the share of a row's bytes that it gives out.
    """

    name: str
    sel: float
    tpr: float
    width: float = 1.0


@dataclass(frozen=True)
class OmCost:
    """C_r and C_m of a plan.

    >>> round(OmCost(c_r=5.0, c_m=775).weighted(OmWeights(0.1, 0.9)), 2)
    697.52
    """

    c_r: float
    c_m: float

    def weighted(self, weights: OmWeights) -> float:
        """Compute Cost(C_r, C_m) = w_r / C_r + w_m C_m (§3.2): infinite without output."""
        return (weights.w_r / self.c_r if self.c_r > 0 else float("inf")) + weights.w_m * self.c_m


def input_buffer(lambda_: Quantity, w: float, tpr: float) -> Quantity:
    """Compute c_inp: the rows that arrive while an operator works on a window (§4.1).

    >>> input_buffer(lambda_=500, w=1, tpr=500)
    500.0
    """
    return lambda_ * (lambda_ * w / tpr)


def selection_rate(sel: float, lambda_: float) -> float:
    """Compute the output rate of a selection (§4.1), or of a projection with `sel` 1."""
    return sel * lambda_


def aggregate_rate(c_omega: float, lambda_: float, w: float) -> float:
    """Compute the output rate of an aggregate that takes `c_omega` seconds a row (§4.1)."""
    return 1 / (c_omega * lambda_ * w)


def join_rate(sel: Quantity, lambda_l: Quantity, lambda_r: Quantity, w: float, c_l: float, c_r: float) -> Quantity:
    """Compute the output rate of a join; rows take `c_l` seconds with the left window, `c_r` with the right (§4.1).

    >>> round(join_rate(sel=0.01, lambda_l=10, lambda_r=10, w=1, c_l=0.1, c_r=0.1), 6)
    0.5
    """
    busy = c_l * lambda_l + c_r * lambda_r
    # Where nothing arrives nothing is busy, and nothing comes out.
    rate: Quantity = sel * lambda_l * lambda_r * w / (busy + (busy == 0))
    return rate


def pipeline_cost(
    operators: Sequence[OmOperator], lambda_: float, w: float, queueing: Queueing = Queueing.SECTION_4_1
) -> OmCost:
    """Compute the cost of operators over one stream, the first of them next to the stream.

    >>> o_1, o_2 = OmOperator("o_1", 0.5, 500), OmOperator("o_2", 0.1, 50)
    >>> pipeline_cost([o_1, o_2], 500, 1, Queueing.EXAMPLE), pipeline_cost([o_2, o_1], 500, 1, Queueing.EXAMPLE)
    (OmCost(c_r=5.0, c_m=775.0), OmCost(c_r=2.5, c_m=575.0))
    """
    example = queueing is Queueing.EXAMPLE
    rate = flow = lambda_
    width, buffered = 1.0, lambda_ * w if example else 0.0
    for operator in operators:
        if not example:
            buffered += width * input_buffer(rate, w, operator.tpr)
        rate = selection_rate(operator.sel, min(rate, operator.tpr) if example else rate)
        flow, width = flow * operator.sel, width * operator.width
        buffered += width * (flow if example else rate) * w
    return OmCost(rate, buffered)


def left_deep_cost(
    rates: Sequence[float], selectivities: Sequence[float], w: float, tpr: float, sel_in: Sequence[float] = ()
) -> OmCost:
    """Compute the cost of a left-deep tree over streams in this order, its i-th join of `selectivities[i]` (§4.1).

    A join's input arrival rate is the mean of its inputs' (§3). Both windows take 1 / tpr a row, which is what "tpr is
    a constant for each operator type" leaves. `sel_in` are the streams' own selections, at the bottom (§4.2, step 2).

    >>> left_deep_cost([300, 300, 300], [0.001, 0.001], 1, 3000).c_r < left_deep_cost(
    ...     [300, 300, 300], [0.01, 0.001], 1, 3000).c_r
    True
    """
    passed = [rate * sel for rate, sel in zip(rates, sel_in or [1.0] * len(rates), strict=True)]
    return OmCost(*left_deep_costs(passed, selectivities, w, tpr))


def left_deep_costs(
    rates: Sequence[Quantity], selectivities: Sequence[Quantity], w: float, tpr: float
) -> tuple[Quantity, Quantity]:
    """Compute C_r and C_m of a left-deep tree (§4.1), at one point or at many points in one call."""
    here, buffered = rates[0], rates[0] * 0.0
    for lambda_r, sel in zip(rates[1:], selectivities, strict=True):
        buffered = buffered + input_buffer((here + lambda_r) / 2, w, tpr)
        here = join_rate(sel, here, lambda_r, w, 1 / tpr, 1 / tpr)
        buffered = buffered + here * w
    return here, buffered
