"""Two queries over one join, three ways to share it: Wang ch. 4 (Equations 4.1, 4.2) and §5.3 (Equations 5.1, 5.2).

Q_1 has window W_1 and no filter, Q_2 the wider window W_2 and the filter sigma_A on A. Joins are nested loops, every
primary operation is one comparison.
"""

from __future__ import annotations

from dataclasses import dataclass

from midstream.lab.costs.cost_terms import Cost
from midstream.sharing.chain_cost import ChainLoad, UnitCosts, edge_lengths


@dataclass(frozen=True)
class TwoQueries:
    """The settings of Table 4.1, with lambda_A = lambda_B (`lambda_`) and W_1 < W_2.

    >>> TwoQueries(lambda_=20, w_1=10, w_2=40, s_sigma=0.5, s_join=0.1).rho
    0.25
    """

    lambda_: float
    w_1: float
    w_2: float
    s_sigma: float
    s_join: float
    m_t: float = 1.0

    @property
    def rho(self) -> float:
        """The window ratio rho = W_1 / W_2 (§5.3)."""
        return self.w_1 / self.w_2


def pull_up(q: TwoQueries) -> Cost:
    """Compute the cost of the wide join, a router, and the filter on its results (§4.1, Equation 4.1).

    >>> cost = pull_up(TwoQueries(lambda_=20, w_1=10, w_2=30, s_sigma=0.5, s_join=0.1))
    >>> cost.c_m, cost.c_p
    (1200.0, 28840.0)
    """
    probed = 2 * q.lambda_**2 * q.w_2
    return Cost(
        memory={"join": 2 * q.lambda_ * q.w_2 * q.m_t},
        cpu={"probe": probed, "purge": 2 * q.lambda_, "route": probed * q.s_join, "filter": probed * q.s_join},
    )


def push_down(q: TwoQueries) -> Cost:
    """Compute the cost of splitting A by the filter, a join for each part, and merged results (§4.2, Equation 4.2).

    >>> cost = push_down(TwoQueries(lambda_=20, w_1=10, w_2=30, s_sigma=0.5, s_join=0.1))
    >>> cost.c_m, cost.c_p
    (1200.0, 18080.0)
    """
    narrow, wide = 2 * q.lambda_**2 * q.w_1, 2 * q.lambda_**2 * q.w_2
    return Cost(
        memory={
            "join 1": (2 - q.s_sigma) * q.lambda_ * q.w_1 * q.m_t,
            "join 2": (1 + q.s_sigma) * q.lambda_ * q.w_2 * q.m_t,
        },
        cpu={
            "split": q.lambda_,
            "probe 1": (1 - q.s_sigma) * narrow,
            "probe 2": q.s_sigma * wide,
            "purge": 3 * q.lambda_,
            "route": q.s_sigma * wide * q.s_join,
            "union": narrow * q.s_join,
        },
    )


def state_slice(q: TwoQueries) -> Cost:
    """Compute the cost of slices [0, W_1) and [W_1, W_2), a filter between, a union by punctuation (§5.3, Equation
    5.1).

    The purge term is the printed 4 lambda: it lets every row of A purge the second slice, which only the share S_sigma
    reaches; `chain.chain_cost` counts (3 + S_sigma) lambda.

    >>> cost = state_slice(TwoQueries(lambda_=20, w_1=10, w_2=30, s_sigma=0.5, s_join=0.1))
    >>> cost.c_m, cost.c_p
    (1000.0, 16940.0)
    """
    narrow, rest = 2 * q.lambda_**2 * q.w_1, 2 * q.lambda_**2 * (q.w_2 - q.w_1)
    return Cost(
        memory={
            "slice 1": 2 * q.lambda_ * q.w_1 * q.m_t,
            "slice 2": (1 + q.s_sigma) * q.lambda_ * (q.w_2 - q.w_1) * q.m_t,
        },
        cpu={
            "probe 1": narrow,
            "filter between": q.lambda_,
            "probe 2": q.s_sigma * rest,
            "purge": 4 * q.lambda_,
            "union": 2 * q.lambda_,
            "filter results": narrow * q.s_join,
        },
    )


def memory_saved_over_pull_up(rho: float, s_sigma: float) -> float:
    """Compute (C_m^(1) - C_m^(3)) / C_m^(1) (§5.3, Equation 5.2).

    >>> memory_saved_over_pull_up(rho=0.5, s_sigma=0.5)
    0.125
    """
    return (1 - rho) * (1 - s_sigma) / 2


def memory_saved_over_push_down(rho: float, s_sigma: float) -> float:
    """Compute (C_m^(2) - C_m^(3)) / C_m^(2) (§5.3, Equation 5.2).

    >>> memory_saved_over_push_down(rho=1, s_sigma=0.5)
    0.3333333333333333
    """
    return rho / (1 + 2 * rho + (1 - rho) * s_sigma)


def cpu_saved_over_pull_up(rho: float, s_sigma: float, s_join: float) -> float:
    """Compute (C_p^(1) - C_p^(3)) / C_p^(1) without the terms in lambda (§5.3, Equation 5.2).

    >>> round(cpu_saved_over_pull_up(rho=0.5, s_sigma=0.5, s_join=0.1), 3)
    0.333
    """
    return ((1 - rho) * (1 - s_sigma) + (2 - rho) * s_join) / (1 + 2 * s_join)


def cpu_saved_over_push_down(rho: float, s_sigma: float, s_join: float) -> float:
    """Compute (C_p^(2) - C_p^(3)) / C_p^(2) without the terms in lambda (§5.3, Equation 5.2).

    With them it is negative where lambda W_2 S_sigma S_⋈ < 3/2: state-slice has 7 lambda of them, push-down 4 lambda.

    >>> round(cpu_saved_over_push_down(rho=0.5, s_sigma=0.5, s_join=0.1), 3)
    0.059
    """
    return s_sigma * s_join / (rho * (1 - s_sigma) + s_sigma + s_sigma * s_join + rho * s_join)


def saved_by_merging(load: ChainLoad, units: UnitCosts, i: int, j: int) -> float:
    """Compute C_p^(a) - C_p^(b): slices J_i, ..., J_j, counted from 1, against one slice (§7.2, Fig. 7.2).

    >>> load = ChainLoad(w=(10, 30), lambda_a=20, lambda_b=20, s_join=0.1)
    >>> saved_by_merging(load, UnitCosts(), i=1, j=2)
    -2320.0
    """
    apart = sum(edge_lengths(load, units, k)[0] for k in range(i - 1, j))
    return float(apart - edge_lengths(load, units, i - 1)[j - i])


def saved_by_merging_as_printed(load: ChainLoad, c_sys: float, i: int, j: int) -> float:
    """Compute the difference as printed (§7.2): no filters, no unions, every cost but C_sys one comparison.

    It saves j - i + 1 operators, where j - i + 1 slices become one: merging nothing would gain C_sys a row.

    >>> load = ChainLoad(w=(10, 30), lambda_a=20, lambda_b=20, s_join=0.1)
    >>> saved_by_merging_as_printed(load, c_sys=1, i=2, j=2)
    40.0
    """
    rates, span = load.lambda_a + load.lambda_b, load.w[j - 1] - (load.w[i - 2] if i > 1 else 0.0)
    routed = 2 * load.lambda_a * load.lambda_b * span * load.s_join * (j - i)
    return rates * (j - i) - routed + c_sys * (j - i + 1) * rates
