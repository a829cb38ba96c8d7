"""The cheapest chain, against all chains there are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.sharing.chain_cost import ChainLoad, UnitCosts
from midstream.sharing.schemes.cpu_opt import cheapest_cuts
from midstream.sharing.schemes.scheme_contract import Figures

Edges = dict[tuple[int, int], float]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, Edges]:
    """Up to seven windows; lengths from few values, so that many chains are equally cheap; some slices forbidden."""
    n = draw(st.integers(1, 7))
    length = st.one_of(st.integers(0, 4).map(float), st.just(float("inf")))
    edges = {(i, j): draw(length) for i, j in combinations(range(n + 1), 2)}
    # The single slice is always allowed, or there may be no chain.
    return n, edges | {(0, n): float(draw(st.integers(0, 12)))}


def rows(n: int, edges: Edges) -> list[np.ndarray]:
    return [np.array([edges[i, j] for j in range(i + 1, n + 1)]) for i in range(n)]


def chains(n: int) -> Iterator[tuple[int, ...]]:
    for size in range(n):
        for inner in combinations(range(1, n), size):
            yield (*inner, n)


def cost(edges: Edges, chain: tuple[int, ...]) -> float:
    return sum(edges[edge] for edge in pairwise((0, *chain)))


@pytest.mark.property
@given(graphs())
def test_no_chain_is_cheaper_and_none_as_cheap_has_fewer_slices(graph: tuple[int, Edges]) -> None:
    n, edges = graph
    windows = [10 * (node + 1) ** 2 for node in range(n)]
    found = cheapest_cuts(windows, rows(n, edges).__getitem__)
    assert list(found) == sorted(set(found)) and found[-1] == windows[-1]
    chain = tuple(windows.index(window) + 1 for window in found)
    assert (cost(edges, chain), len(chain)) == min((cost(edges, other), len(other)) for other in chains(n))


def test_equal_costs_go_to_fewer_slices() -> None:
    assert cheapest_cuts([1, 2, 3], lambda i: np.arange(1.0, 4 - i)) == (3,)


def test_of_two_cheapest_chains_the_shorter_one_though_it_is_found_later() -> None:
    """0-1-2-4 and 0-3-4 cost four each."""
    edges = {(i, j): float("inf") for i, j in combinations(range(5), 2)}
    edges |= {(0, 1): 1.0, (1, 2): 1.0, (2, 4): 2.0, (0, 3): 3.0, (3, 4): 1.0}
    assert cheapest_cuts([1, 2, 3, 4], rows(4, edges).__getitem__) == (3, 4)


def test_a_boundary_that_costs_nothing_but_saves_something_is_made() -> None:
    assert cheapest_cuts([1, 2, 3], lambda i: np.arange(1.0, 4 - i) ** 2) == (1, 2, 3)


def test_one_window_and_none() -> None:
    assert cheapest_cuts([5], lambda i: np.array([1e9])) == (5,)
    assert cheapest_cuts([], lambda i: np.array([])) == ()


def test_windows_that_do_not_ascend_are_refused() -> None:
    for windows in ([5, 5], [5, 3], [0, 1]):
        with pytest.raises(ValueError, match="ascend"):
            cheapest_cuts(windows, lambda i: np.ones(2 - i))


def test_without_any_finite_chain_it_says_so() -> None:
    with pytest.raises(ValueError, match="finite"):
        cheapest_cuts([1, 2], lambda i: np.full(2 - i, np.inf))


def test_a_thousand_windows_take_a_vector_operation_each() -> None:
    asked: list[int] = []

    def lengths(i: int) -> np.ndarray:
        asked.append(i)
        return 50 + np.arange(1.0, 1001 - i) ** 2

    found = cheapest_cuts(range(1, 1001), lengths)
    assert asked == list(range(1000))
    assert set(np.diff((0, *found)).tolist()) <= {6, 7, 8}, "50 + k^2 is least per window at k = sqrt(50)"


def test_a_join_tree_is_weighed_by_its_own_results_and_rows() -> None:
    # Of three streams results within a window grow as its square, and rows of three are purged at each boundary.
    load = ChainLoad((1.0, 2.0), 10, 10, s_join=0.5)
    units = UnitCosts(probe=0, filter=0, union=0, purge=1, route=1, boundary=6)
    two, three = Figures(load, units), Figures(load, units, (10.0,))
    assert two.lengths(0).tolist() == [20 + 6, 20 + 6 + 200] and two.lengths(1).tolist() == [20 + 6]
    assert three.lengths(0).tolist() == [30 + 9, 30 + 9 + 200] and three.lengths(1).tolist() == [30 + 9]
    narrow = ChainLoad((1.0, 4.0, 5.0), 10, 10, s_join=0.5)
    placed_of_two, placed_of_three = (Figures(narrow, units, others).lengths(0) for others in ((), (10.0,)))
    # Within 4 s there are 4/5 of the results of two streams, and 16/25 of those of three.
    assert placed_of_two[1] - placed_of_two[0] == 400
    assert placed_of_three[1] - placed_of_three[0] == pytest.approx(320)
