"""The chain over N queries, its slices merged or not: Wang ch. 7 (Theorems 5 and 6, §7.2, Fig. 7.3, §7.4.2).

Windows w_1 < ... < w_N, w_0 = 0; node v_i of Fig. 7.3 is window w_i, the edge from v_i to v_j a slice [w_i, w_j), with
a router if windows lie inside it. A path from v_0 to v_N is a chain; its cost is the sum of its edges, which
`sharing.shortest_path` makes least.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class UnitCosts:
    """What one operation costs; the defaults count comparisons as ch. 4 to 7 do, measured ones give seconds.

    `probe` a pair examined, `purge` a row that leaves a slice, `route` a result held against one window, `filter` a row
    or a result held against one filter, `union` a punctuation at one union, `operator` a row that passes one more
    operator (C_sys). `boundary` is not the paper's: one more slice for a unit of time, whatever flows, which is what an
    engine that works in steps pays.
    """

    probe: float = 1.0
    purge: float = 1.0
    route: float = 1.0
    filter: float = 1.0
    union: float = 1.0
    operator: float = 0.0
    boundary: float = 0.0


@dataclass(frozen=True)
class ChainLoad:
    """N queries over A and B by ascending windows, with what flows.

    `s_a[k]` is the selectivity of query k's filter on A (cond_k of §7.4), `s_a_prime[k]` that of the disjunction of the
    filters of k and all wider queries (cond'_k); empty means no filters, and an empty disjunction that of nested
    filters, the least there can be. Likewise for B.

    >>> ChainLoad(w=(10, 30), lambda_a=20, lambda_b=20, s_join=0.1, s_a=(1, 0.5)).entering_a.tolist()
    [1.0, 0.5]
    """

    w: tuple[float, ...]
    lambda_a: float
    lambda_b: float
    s_join: float
    s_a: tuple[float, ...] = ()
    s_b: tuple[float, ...] = ()
    s_a_prime: tuple[float, ...] = ()
    s_b_prime: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.w or any(high <= low for low, high in pairwise((0, *self.w))):
            raise ValueError(f"windows must be positive and ascend, not {self.w}")
        if any(len(s) not in (0, len(self.w)) for s in (self.s_a, self.s_b, self.s_a_prime, self.s_b_prime)):
            raise ValueError("there must be one selectivity per query, or none")

    @cached_property
    def passing_a(self) -> Numbers:
        """Compute the share of A that passes each query's own filter."""
        return _shares(self.s_a, np.ones(len(self.w)))

    @cached_property
    def passing_b(self) -> Numbers:
        """Compute the share of B that passes each query's own filter."""
        return _shares(self.s_b, np.ones(len(self.w)))

    @cached_property
    def entering_a(self) -> Numbers:
        """Compute the share of A that some query from each one on selects, which enters a slice before its window."""
        return _shares(self.s_a_prime, _widest(self.passing_a))

    @cached_property
    def entering_b(self) -> Numbers:
        """Compute the share of B that some query from each one on selects."""
        return _shares(self.s_b_prime, _widest(self.passing_b))

    @cached_property
    def spans(self) -> Numbers:
        """The lengths of the slices between the windows."""
        return np.diff([0.0, *self.w])


def state_rows(load: ChainLoad, cuts: tuple[float, ...]) -> float:
    """Count the rows in a chain's states whose slices end at `cuts` (Theorems 5 and 6; §7.4.2 for merged slices).

    Without filters it is (lambda_A + lambda_B) w_N however the chain is cut; with them it is least where every window
    is a cut, for a merged slice keeps what only its first query selects until its end.

    >>> load = ChainLoad(w=(10, 30), lambda_a=20, lambda_b=20, s_join=0.1, s_a=(1, 0.5))
    >>> state_rows(load, cuts=(10, 30)), state_rows(load, cuts=(30,))
    (1000.0, 1200.0)
    """
    ends = (0.0, *cuts)
    nodes = np.searchsorted([0.0, *load.w], ends)
    rows = load.lambda_a * load.entering_a + load.lambda_b * load.entering_b
    return float(np.sum(rows[nodes[:-1]] * np.diff(ends)))


def edge_lengths(load: ChainLoad, units: UnitCosts, i: int) -> Numbers:
    """Compute the lengths l_{i,j} of the edges from v_i to v_{i+1}, ..., v_N, per unit of time (§7.2, Fig. 7.3;
    §7.4.2).

    An edge carries what belongs to its slice alone, so that Lemma 4 holds: probing, purging and passing the operator by
    the rows that enter; a comparison per result with each window inside it (the router), and with the filter of each
    query that takes the result and whose filter is not the slice's own; the filter at its end; and a union for each of
    its queries. Queries that end in the chain's first slice need no union (Fig. 7.1); §7.2 overlooks it where it takes
    unions as equal on both sides of a merge.

    >>> load = ChainLoad(w=(10, 30), lambda_a=20, lambda_b=20, s_join=0.1)
    >>> edge_lengths(load, UnitCosts(), 0).tolist(), edge_lengths(load, UnitCosts(), 1).tolist()
    ([8040.0, 26440.0], [16080.0])
    """
    share_a, share_b, spans = load.entering_a[i], load.entering_b[i], load.spans[i:]
    rows_a, rows_b = load.lambda_a * share_a, load.lambda_b * share_b
    inside = np.arange(len(spans))
    pairs = 2 * rows_a * rows_b * np.cumsum(spans)
    own = (load.passing_a[i:] < share_a) | (load.passing_b[i:] < share_b)
    takers = np.cumsum(own[::-1])[::-1]
    filtered = 2 * rows_a * rows_b * load.s_join * np.cumsum(spans * takers)
    between = _between(load.lambda_a, load.entering_a, i) + _between(load.lambda_b, load.entering_b, i)
    unions = (load.lambda_a + load.lambda_b) * (inside + 1 if i else 0 * inside)
    lengths: Numbers = (
        units.probe * pairs
        + (units.purge + units.operator) * (rows_a + rows_b)
        + units.route * pairs * load.s_join * inside
        + units.filter * (filtered + between)
        + units.union * unions
        + units.boundary
    )
    return lengths


def chain_cost(load: ChainLoad, units: UnitCosts, cuts: tuple[float, ...]) -> float:
    """Sum the edges of the path whose slices end at `cuts`: C_p of that chain (Fig. 7.3).

    >>> load = ChainLoad(w=(10, 30), lambda_a=20, lambda_b=20, s_join=0.1)
    >>> chain_cost(load, UnitCosts(), cuts=(10, 30)), chain_cost(load, UnitCosts(), cuts=(30,))
    (24120.0, 26440.0)
    """
    nodes = [int(node) for node in np.searchsorted([0.0, *load.w], (0.0, *cuts))]
    return float(sum(edge_lengths(load, units, i)[j - i - 1] for i, j in pairwise(nodes)))


def _between(rate: float, entering: Numbers, i: int) -> Numbers:
    # With lineage (§7.4.1) the filter is a look at the row's code: one comparison, whatever the disjunction.
    narrower = np.append(entering[i + 1 :] < entering[i], False)
    first = rate if i == 0 and entering[0] < 1 else 0.0
    met: Numbers = rate * entering[i] * narrower + first
    return met


def _shares(given: tuple[float, ...], otherwise: Numbers) -> Numbers:
    return np.array(given, np.float64) if given else otherwise


def _widest(passing: Numbers) -> Numbers:
    # The share of the disjunction from each query on, if the filters are nested.
    widest: Numbers = np.maximum.accumulate(passing[::-1])[::-1]
    return widest
