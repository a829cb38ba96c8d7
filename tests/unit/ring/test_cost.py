"""The cost model of chapter 13: its equations agree with one another, and Theorem 9 with the least of Eq. 13.5."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx

from midstream.lab.costs.ring import (
    best_length,
    central_workload,
    latency,
    output_gain,
    ring_workload,
    selected,
    theorem_9,
)
from midstream.model.errors import PlanError
from midstream.ring.cost import (
    ProbingStep,
    RingCosts,
    RingLoad,
    length,
    result_latency,
)

Loads = st.builds(RingLoad.alike, st.integers(2, 4), st.floats(5, 200), st.floats(0.001, 0.1))
Costs = st.builds(RingCosts, join=st.floats(1e-6, 1e-2), send=st.floats(0, 1e-4), hop=st.floats(1e-4, 1e-1))


@settings(max_examples=50, deadline=None, derandomize=True)
@given(load=Loads, costs=Costs, nodes=st.integers(1, 20))
def test_equations_13_2_and_13_4_follow_for_streams_that_are_alike(
    load: RingLoad, costs: RingCosts, nodes: int
) -> None:
    central, rows = central_workload(load, costs), load.steps[0].rows
    assert ring_workload(load, costs, nodes) == approx(central * (1 + costs.send * nodes / (rows * costs.join)))
    assert output_gain(load, costs, nodes) == approx(1 / (1 / nodes + costs.send / (rows * costs.join)))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(load=Loads, costs=Costs)
def test_theorem_9_is_within_one_node_of_the_least_latency(load: RingLoad, costs: RingCosts) -> None:
    found = theorem_9(load, costs)
    around = range(max(found - 3, 1), found + 4)
    least = min(around, key=lambda nodes: latency(load, costs, nodes))
    # Eq. 13.5 is convex in N: what is least among the neighbours is least of all.
    assert abs(found - least) <= 1
    assert max(found, 1) - 1 <= max(best_length(load, costs), 1) <= found + 1


@settings(max_examples=200, deadline=None, derandomize=True)
@given(load=Loads, costs=Costs)
def test_the_length_has_the_least_mean_latency_of_results(load: RingLoad, costs: RingCosts) -> None:
    found = length(load, costs, most=10**9)
    # Convex in N: what is least among the neighbours is least of all.
    for nodes in (found - 1, found + 1):
        assert nodes < 1 or result_latency(load, costs, found) <= result_latency(load, costs, nodes)
    assert length(load, costs, most=2) == min(found, 2)


def test_a_result_waits_for_half_of_the_last_step_and_half_a_round_for_each() -> None:
    """Where there is a result, its own partial result is there beside the five expected."""
    load, costs = RingLoad.alike(3, 50, 0.1), RingCosts(join=1.0, send=0.5, hop=1.0)
    assert result_latency(load, costs, 5) == 2 * 2.0 * 1.5 + (50 + 6 * 50 / 2) / 5 + 0.5 * 7


def test_a_longer_ring_has_more_output_but_not_always_less_latency() -> None:
    load, costs = RingLoad.alike(3, 50, 0.1), RingCosts(join=1.0, send=0.5, hop=1.0)
    assert all(output_gain(load, costs, n) < output_gain(load, costs, n + 1) for n in range(1, 30))
    at = [latency(load, costs, n) for n in range(1, 31)]
    assert min(at) < at[0] and min(at) < at[-1]


def test_latency_is_the_way_to_the_mean_node_and_the_longer_of_work_and_network() -> None:
    load, costs = RingLoad.alike(3, 50, 0.1), RingCosts(join=1.0, send=0.5, hop=1.0)
    assert latency(load, costs, 4) == 1.5 + (300 + 0.5 * 4 * 6) / 4
    assert latency(load, costs, 20) == 9.5 + 3 * 20


def test_a_step_is_charged_for_the_pairs_it_compares() -> None:
    """100 rows of the first state, of which 10 match, and for each of them 20 of the second."""
    load = RingLoad((ProbingStep(100, 0.1), ProbingStep(20, 0.5)))
    assert (load.compared, load.sent) == (300.0, 11.0)
    costs = RingCosts(join=2.0, purge=3.0, insert=4.0, send=5.0)
    assert central_workload(load, costs) == 607.0
    assert ring_workload(load, costs, 2) == 607.0 + 5.0 * 2 * 11


@settings(max_examples=50, deadline=None, derandomize=True)
@given(load=Loads, costs=Costs, share=st.floats(0.1, 1))
def test_selections_pushed_in_make_states_smaller_and_rings_shorter(
    load: RingLoad, costs: RingCosts, share: float
) -> None:
    """Eq. 21.1: every product has the selectivities of the selections so far."""
    shared = selected(load, [share] * len(load.steps))
    expected, partials = 0.0, 1.0
    for step in load.steps:
        expected += partials * step.rows * share
        partials *= step.rows * share * step.selectivity
    assert shared.compared == approx(expected)
    assert length(shared, costs, most=10**9) <= length(load, costs, most=10**9)


def test_a_network_without_latency_has_no_best_length() -> None:
    with pytest.raises(PlanError, match="T_n"):
        length(RingLoad.alike(3, 50, 0.1), RingCosts(join=1.0), most=8)
