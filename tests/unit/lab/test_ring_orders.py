"""Execution orders: Lemma 15.1 with lazy purge, what is missed without it, and where Lemma 15.2 holds (Wang §15.2)."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.lab.drawing import PANEL
from midstream.lab.figures import ring_orders as figure
from midstream.lab.figures.ring_orders import Execution, OrderedRing, out_of_order
from midstream.lab.ring_cluster import RingArrivals, RingCounts
from midstream.lab.ring_figures import CASE
from midstream.lab.tidy import table
from midstream.ring.cost import RingCosts
from tests.unit.lab.ring_join import WINDOW, as_sets, expected

COSTS = RingCosts(join=1e-3, send=1e-4, hop=5e-3)
RINGS = [(2, 1), (2, 4), (3, 1), (3, 4), (4, 2)]

rings = pytest.mark.parametrize(("ways", "nodes"), RINGS)


def run(execution: Execution, ways: int, nodes: int, seed: int, lazy: bool = True) -> tuple[RingArrivals, RingCounts]:
    drawn = RingArrivals.drawn(ways, 2.0 if ways < 4 else 1.0, 0.4, 9.0, seed)
    arrivals, order = execution.drawn(drawn, seed)
    return arrivals, OrderedRing(arrivals, WINDOW, nodes, COSTS, order=order, lazy=lazy).run()


@rings
@pytest.mark.parametrize("execution", [Execution.TOTAL, Execution.SEMI])
@settings(max_examples=5, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32))
def test_with_lazy_purge_the_result_is_complete(ways: int, nodes: int, execution: Execution, seed: int) -> None:
    """Lemma 15.1: nothing twice, nothing missing; and END tuples end cycles as ever."""
    arrivals, counts = run(execution, ways, nodes, seed)
    assert as_sets(counts.results) == expected(arrivals)
    assert counts.violations == []


@pytest.mark.parametrize("seed", [1, 2])
def test_without_it_semi_ordered_execution_misses_results(seed: int) -> None:
    arrivals, counts = run(Execution.SEMI, 3, 4, seed, lazy=False)
    assert as_sets(counts.results) < expected(arrivals)


@pytest.mark.parametrize("seed", [1, 2])
def test_unordered_execution_misses_results_even_so(seed: int) -> None:
    arrivals, counts = run(Execution.UNORDERED, 3, 4, seed)
    assert as_sets(counts.results) < expected(arrivals)


@pytest.mark.parametrize(("ways", "nodes"), [(2, 1), (2, 4), (3, 1), (4, 1)])
def test_an_operator_s_results_come_in_the_order_of_lemma_15_2(ways: int, nodes: int) -> None:
    for seed in (1, 2):
        arrivals, counts = run(Execution.SEMI, ways, nodes, seed)
        for node in range(nodes):
            results = [rows for rows, at in zip(counts.results, counts.nodes, strict=True) if at == node]
            assert out_of_order(arrivals, results) == 0 < len(results)


def test_partial_results_from_other_nodes_break_lemma_15_2() -> None:
    """Its proof takes partial results to come in order of time; from younger slices they come first."""
    arrivals, counts = run(Execution.TOTAL, 3, 4, 1)
    by_node = [[rows for rows, at in zip(counts.results, counts.nodes, strict=True) if at == node] for node in range(4)]
    assert sum(out_of_order(arrivals, results) for results in by_node if results) > 0


@pytest.mark.parametrize(
    ("execution", "ordered"), [(Execution.TOTAL, True), (Execution.SEMI, True), (Execution.UNORDERED, False)]
)
def test_orders_are_what_they_say(execution: Execution, ordered: bool) -> None:
    drawn = RingArrivals.drawn(3, 5.0, 0.5, 9.0, 1)
    arrivals, order = execution.drawn(drawn, 1)
    assert sorted(order) == sorted(
        (stream, number) for stream in range(3) for number in range(len(drawn.times[stream]))
    )
    assert [sorted(times) for times in arrivals.times] == [sorted(times) for times in drawn.times]
    assert all((times[1:] > times[:-1]).all() for times in arrivals.times) == ordered
    times = [arrivals.times[stream][number] for stream, number in order]
    assert (times == sorted(times)) == (execution is Execution.TOTAL)
    assert expected(arrivals) and len(expected(arrivals)) == len(expected(drawn))


def orders(missing: int, twice: int, eager: int, unordered: int, misordered: int) -> pa.Table:
    names = (figure.RESULTS, figure.MISSING, figure.TWICE, figure.MISORDERED)
    found = {
        "totally ordered, eager": (9, 0, 0, 0),
        "semi-ordered, eager": (9, eager, 0, 0),
        "semi-ordered, lazy": (9, missing, twice, misordered),
        "unordered, lazy": (9, unordered, 0, 5),
    }
    return table({PANEL: "3 streams", CASE: case, **dict(zip(names, row, strict=True))} for case, row in found.items())


@pytest.mark.parametrize(
    ("data", "expected_verdicts"),
    [
        (orders(0, 0, 3, 4, 0), (True, True, True, True)),
        (orders(1, 0, 0, 4, 0), (False, False, True, True)),
        (orders(0, 1, 3, 0, 2), (False, True, False, False)),
    ],
)
def test_the_claims_of_the_section(data: pa.Table, expected_verdicts: tuple[bool, ...]) -> None:
    assert tuple(verdict.holds for verdict in figure.Wang1502().judge(data)) == expected_verdicts
