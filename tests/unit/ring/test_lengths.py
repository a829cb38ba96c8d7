"""A length for each stream's ring (§13.3): for streams alike that of §13.2, else as good as trying all of them."""

from __future__ import annotations

from itertools import permutations, product

from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx

from midstream.lab.costs.ring import output_gain, ring_workload
from midstream.ring.cost import ProbingStep, RingCosts, RingLoad, length, result_latency
from midstream.ring.lengthening import RouteLoad, busiest, by_matches, lengths_for, mean_latency, rings_of

MOST = 5
LABELS = "ABC"


@st.composite
def routes(draw: st.DrawFn) -> list[RouteLoad]:
    """Three streams, each with an order of its own and what each step of it meets."""
    step = st.builds(ProbingStep, st.floats(0, 300), st.floats(0, 0.2))
    orders = [draw(st.sampled_from(list(permutations(LABELS.replace(label, ""))))) for label in LABELS]
    return [
        RouteLoad(label, order, draw(st.floats(0.1, 50)), RingLoad((draw(step), draw(step))))
        for label, order in zip(LABELS, orders, strict=True)
    ]


Costs = st.builds(RingCosts, join=st.floats(1e-6, 1e-3), send=st.floats(0, 1e-4), hop=st.floats(1e-4, 1e-2))


def alike(load: RingLoad) -> list[RouteLoad]:
    # Each stream is visited first by one and last by another.
    return [RouteLoad(start, (second, third), 7.0, load) for start, second, third in ("ABC", "BCA", "CAB")]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(rows=st.floats(5, 200), selectivity=st.floats(0.001, 0.1), costs=Costs)
def test_streams_alike_have_rings_of_the_length_of_13_2(rows: float, selectivity: float, costs: RingCosts) -> None:
    load = RingLoad.alike(3, rows, selectivity)
    best = length(load, costs, most=24)
    found = lengths_for(LABELS, 24, lambda lengths: mean_latency(alike(load), costs, lengths))
    assert mean_latency(alike(load), costs, found) == approx(result_latency(load, costs, best), rel=1e-9)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(rows=st.floats(5, 200), selectivity=st.floats(0.001, 0.1), costs=Costs, nodes=st.integers(1, 12))
def test_the_busiest_node_has_its_share_of_eq_13_1(
    rows: float, selectivity: float, costs: RingCosts, nodes: int
) -> None:
    """Of 21 rows, with rings of equal length; the output rate gains by it as Eq. 13.4 has it."""
    load = RingLoad.alike(3, rows, selectivity)
    found = [busiest(alike(load), costs, dict.fromkeys(LABELS, one)) for one in (nodes, 1)]
    assert found[0] == approx(21 * ring_workload(load, costs, nodes) / nodes)
    assert found[1] / found[0] == approx(output_gain(load, costs, nodes) / output_gain(load, costs, 1))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(found=routes(), costs=Costs)
def test_results_come_as_soon_as_with_the_best_of_all_lengths(found: list[RouteLoad], costs: RingCosts) -> None:
    chosen = lengths_for(by_matches(found), MOST, lambda lengths: mean_latency(found, costs, lengths))
    every = (dict(zip(LABELS, lengths, strict=True)) for lengths in product(range(1, MOST + 1), repeat=3))
    assert mean_latency(found, costs, chosen) <= min(mean_latency(found, costs, one) for one in every) * (1 + 1e-9)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(found=routes(), costs=Costs)
def test_the_busiest_node_is_no_busier_than_with_one_length(found: list[RouteLoad], costs: RingCosts) -> None:
    """Near the best of all lengths, too, where the heuristic of §13.3 may miss them."""
    chosen = lengths_for(by_matches(found), MOST, lambda lengths: busiest(found, costs, lengths))
    one = min(busiest(found, costs, dict.fromkeys(LABELS, nodes)) for nodes in range(1, MOST + 1))
    every = (dict(zip(LABELS, lengths, strict=True)) for lengths in product(range(1, MOST + 1), repeat=3))
    best = min(busiest(found, costs, lengths) for lengths in every)
    assert best <= busiest(found, costs, chosen) <= min(one, 1.25 * best) * (1 + 1e-9)


def test_a_small_stream_has_a_short_ring_and_leaves_the_other_nodes_to_those_with_work() -> None:
    """A row of B meets 2 of A and 1,000 of C. By the first pass of §13.3 alone, A's ring is as long as the others'."""
    small, large = ProbingStep(2, 0.1), ProbingStep(1_000, 0.01)
    found = [
        RouteLoad("A", ("B", "C"), 1, RingLoad((large, large))),
        RouteLoad("B", ("A", "C"), 500, RingLoad((small, large))),
        RouteLoad("C", ("A", "B"), 500, RingLoad((small, large))),
    ]
    assert by_matches(found) == ["A", "B", "C"]
    costs = RingCosts(join=1e-4, send=1e-3, hop=1e-3)
    for cost in (mean_latency, busiest):
        chosen = lengths_for(by_matches(found), 8, lambda lengths, cost=cost: cost(found, costs, lengths))  # type: ignore[misc]
        assert chosen["A"] == 1 < min(chosen["B"], chosen["C"])
        together = min(cost(found, costs, dict.fromkeys(LABELS, nodes)) for nodes in range(1, 9))
        assert cost(found, costs, chosen) < together
    rings = rings_of(found, costs, {"A": 1, "B": 4, "C": 3})
    assert rings["B"] == (0, 1, 2, 3) and not set(rings["A"]) & set(rings["C"])
