"""OM's four steps lead to a plan that no single change of what they decide makes cheaper."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.lab.costs.om_heuristics import OmStream, grouped, om_plan
from midstream.lab.om_rounds import Q1, Q2, WEIGHTS, OmQuery
from midstream.optimizer.cost.om import OmOperator, OmWeights, left_deep_cost, pipeline_cost

W, TPR = 1.0, 3000.0
SELECTIONS = st.lists(st.builds(OmOperator, st.just("s"), st.floats(0.01, 1), st.floats(1e3, 1e6)), max_size=3)
PROJECTIONS = st.none() | st.builds(OmOperator, st.just("p"), st.just(1.0), st.floats(1e3, 1e6), st.floats(0.1, 1))
STREAMS = st.builds(OmStream, st.floats(1, 1000), SELECTIONS.map(tuple), PROJECTIONS)


def of(streams: dict[str, OmStream], weights: OmWeights, aggregate: OmOperator | None = None) -> tuple[str, ...]:
    return om_plan(streams, lambda left, right: 0.001 * len(left), W, TPR, weights, aggregate).joins.aliases()


@settings(deadline=None)
@given(st.lists(STREAMS, min_size=1, max_size=5), st.floats(0, 1))
def test_no_exchange_of_two_streams_is_cheaper(streams: list[OmStream], share: float) -> None:
    weights, named = OmWeights(share, 1 - share), dict(zip("ABCDE", streams, strict=False))
    found = of(named, weights)

    def cost(order: tuple[str, ...]) -> float:
        passed = [named[name].rate * np.prod([s.sel for s in named[name].selections]) for name in order]
        matches = [0.001 * i for i in range(1, len(order))]
        below = sum(one.c_m for one in pipelines)
        joined = left_deep_cost([float(rate) for rate in passed], matches, W, TPR)
        return weights.w_r / joined.c_r + weights.w_m * (joined.c_m + below)

    plan = om_plan(named, lambda left, right: 0.001 * len(left), W, TPR, weights)
    pipelines = [pipeline_cost(plan.pipelines[name], named[name].rate, W) for name in named]
    assert sorted(found) == sorted(named) and plan.cost.weighted(weights) == pytest.approx(cost(found))
    for i, j in combinations(range(len(found)), 2):
        other = list(found)
        other[i], other[j] = other[j], other[i]
        assert cost(found) <= cost(tuple(other)) * (1 + 1e-9)


@settings(deadline=None)
@given(STREAMS, st.floats(0, 1))
def test_selections_are_one_and_lie_where_that_is_cheaper(stream: OmStream, share: float) -> None:
    weights = OmWeights(share, 1 - share)
    found = om_plan({"A": stream}, lambda left, right: 1.0, W, TPR, weights).pipelines["A"]
    operators = (*grouped(stream.selections), *filter(None, [stream.projection]))
    costs = [pipeline_cost(order, stream.rate, W).weighted(weights) for order in permutations(operators)]
    assert sorted(one.name for one in found) == sorted(one.name for one in operators)
    assert pipeline_cost(found, stream.rate, W).weighted(weights) == min(costs)


def test_an_aggregate_comes_last_and_counts() -> None:
    streams = {"A": OmStream(10.0), "B": OmStream(20.0)}
    alone = om_plan(streams, lambda left, right: 0.1, W, TPR, WEIGHTS)
    summed = om_plan(streams, lambda left, right: 0.1, W, TPR, WEIGHTS, OmOperator("sum", 1.0, 100.0))
    assert summed.joins == alone.joins
    assert summed.cost.c_r == pytest.approx(100 / alone.cost.c_r) and summed.cost.c_m > alone.cost.c_m


@pytest.mark.parametrize("query", [Q1, Q2], ids=lambda query: query.name)
def test_the_plan_of_a_papers_query_is_the_cheapest_of_its_candidates(query: OmQuery) -> None:
    random = np.random.default_rng(0)
    for _ in range(200):
        point = [float(x) for x in random.uniform(0.05, 1.0, len(query.dimensions))]
        point = [x if d == "selectivity" else 1000 * x for x, d in zip(point, query.dimensions, strict=True)]
        cheapest = min(query.cost(point, WEIGHTS))
        assert query.cost(point, WEIGHTS)[query.plans.index(query.heuristic(point, WEIGHTS))] == cheapest
