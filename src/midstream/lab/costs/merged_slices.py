"""What it saves to merge slices of a chain (Wang §7.2), by the engine's model and as printed."""

from __future__ import annotations

from midstream.sharing.chain_cost import ChainLoad, UnitCosts, edge_lengths


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
