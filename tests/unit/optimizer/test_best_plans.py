"""The search against all plans there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, cycle, permutations, product
from random import Random
from typing import Literal

import numpy as np
import pytest
from pytest import approx
from typing_extensions import override

from midstream.lab.costs.om_heuristics import left_deep_order
from midstream.optimizer.cost.join_cost import JoinMade
from midstream.optimizer.cost.plan_cost import CostModel, PlansWeighed
from midstream.optimizer.cost.sizes import Sizes
from midstream.optimizer.cost.units import PLAN_OBJECTIVES, CostWeights, JoinUnitCosts
from midstream.optimizer.estimate import Estimate
from midstream.optimizer.search.best import best_plans, cheapest_orders, ranked
from midstream.optimizer.search.bushy import MOST_SOURCES, cheapest_trees
from midstream.optimizer.search.greedy import NOISE, ROUNDS, Searched, connected_tree, exchanges, searched_tree
from midstream.optimizer.search.subsets import Subsets
from midstream.optimizer.statistics import Condition, JoinStatistics, Sources, SourceStatistics, Statistics
from midstream.plan.tree import Eddy, Join, MultiJoin, Plan, bushy_trees, left_deep_trees
from tests.drawing import seeds

WINDOW = 10.0


def drawn(seed: int, count: int) -> Statistics:
    """A query over so many sources, what ties them, and what some of its joins did."""
    random = Random(seed)
    names = "ABCDEFGHIJKLMNO"[:count]
    rates = {name: 10 ** random.uniform(0, 3) for name in names}
    sources = {name: SourceStatistics(rate, rate * WINDOW, WINDOW) for name, rate in rates.items()}
    conditions = [_condition(random, names, i) for i in range(1, count) if seed % 4 or i != count // 2]
    conditions += [Condition("theta", frozenset(random.sample(names, min(3, count)))) for _ in range(seed % 3)]
    joins = [
        JoinStatistics(frozenset({one}), frozenset({other}), 10 ** random.uniform(-4, -1), random.uniform(0.2, 1))
        for condition in conditions
        for one, other in [sorted(condition.sources)[:2]]
    ]
    return Statistics(sources, tuple(dict.fromkeys(conditions)), tuple(joins))


def _condition(random: Random, names: str, i: int) -> Condition:
    kinds: list[Literal["hash", "band", "theta"]] = ["hash", "hash", "hash", "band", "theta"]
    kind = random.choice(kinds)
    other = random.choice(names[:i])
    wider = {random.choice(names)} if kind == "hash" and random.random() < 0.3 else set[str]()
    return Condition(
        "hash" if kind == "hash" else "band" if kind == "band" else "theta", frozenset({names[i], other} | wider)
    )


def subsets(live: Statistics) -> Subsets:
    return Subsets(tuple(live.sources), live.conditions, Sizes(Estimate(live)))


def possible_trees(live: Statistics) -> Iterator[Plan]:
    """All bushy trees without needless cross products."""
    of = subsets(live)
    for tree in bushy_trees(list(live.sources)):
        if all(of.is_joinable(of.mask(part.aliases())) for part in tree.walk()):
            yield tree


MODELS = [
    CostModel(),
    CostModel(JoinUnitCosts(1, 2, 3, 4, 5, 6, 7, 8), CostWeights(1.0, 0.5)),
    CostModel(weights=PLAN_OBJECTIVES["memory"]),
]


@pytest.mark.parametrize("seed", seeds(24))
def test_the_search_finds_what_trying_all_trees_finds(seed: int) -> None:
    live = drawn(seed, 2 + seed % 5)
    estimate, model = Estimate(live), MODELS[seed % 3]
    values = sorted(model.of(tree, estimate).value for tree in possible_trees(live))
    found = [model.of(tree, estimate).value for _, tree in cheapest_trees(subsets(live), model, 5)]
    assert found == approx(values[:5], rel=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_states_that_other_queries_keep_are_free(seed: int) -> None:
    live = drawn(seed, 5)
    estimate, model = Estimate(live), MODELS[seed % 3]
    other = next(possible_trees(live))
    kept = frozenset(frozenset(part.aliases()) for part in other.walk()) - {frozenset(live.sources)}
    chosen = frozenset(Random(seed).sample(sorted(kept, key=sorted), 2))
    least = min(model.of(tree, estimate, chosen).value for tree in possible_trees(live))
    (_, tree), *_ = cheapest_trees(subsets(live), model, 1, chosen)
    assert model.of(tree, estimate, chosen).value == approx(least)
    assert model.of(other, estimate, kept).value <= model.of(other, estimate, chosen).value


def all_orders(names: Sequence[str]) -> Iterator[MultiJoin]:
    each = [[(name, order) for order in permutations([n for n in names if n != name])] for name in names]
    return (MultiJoin(orders) for orders in product(*each))


@pytest.mark.parametrize("seed", [1, 2, 3, 5])
def test_the_probing_orders_are_the_cheapest(seed: int) -> None:
    live = drawn(seed, 3 + seed % 2)
    of, model = subsets(live), MODELS[0]
    possible = [
        orders
        for orders in all_orders(list(live.sources))
        if all(
            of.is_joinable(of.mask((start, *order[:i]))) for start, order in orders.orders for i in range(len(order))
        )
    ]
    values = [model.of(orders, of.sizes.estimate).value for orders in possible]
    assert model.of(cheapest_orders(of, model), of.sizes.estimate).value == approx(min(values))


@pytest.mark.parametrize("seed", range(6))
def test_arrays_say_what_single_sizes_say(seed: int) -> None:
    of = subsets(drawn(seed, 5))
    masks = [int(mask) for mask in of.joinable.nonzero()[0]]
    assert masks == [mask for mask in range(1, of.full + 1) if of.is_joinable(mask)]
    for left, right in [(a, b) for a in masks for b in masks if not a & b and of.joinable[a | b]]:
        (examined,) = of.examined(np.array([left]), np.array([right]))
        assert examined == approx(of.sizes.examined(of.sources(left), of.sources(right)))


def test_of_many_sets_the_great_ones_are_derived_from_small_ones() -> None:
    """Keys that nothing skews: what a source adds does not depend on the others, so that nothing is lost."""
    names = "ABCDEFGHIJ"
    sources = {name: SourceStatistics(10.0 + i, 100.0 + 10 * i, WINDOW) for i, name in enumerate(names)}
    joins = [JoinStatistics(frozenset(one), frozenset(other), 0.01, 1.0) for one, other in combinations(names, 2)]
    estimate = Estimate(Statistics(sources, (Condition("hash", frozenset(names)),), tuple(joins)))
    calls: list[Sources] = []

    class Counting(Sizes):
        def rows(self, sources: Sources) -> float:
            calls.append(sources)
            return super().rows(sources)

    of = Subsets(tuple(names), estimate.statistics.conditions, Counting(estimate))
    assert len(of.rows) == 1024 and len(calls) == 10 + 45 + 120
    for mask in (0b1111, 0b1010101010, of.full):
        assert of.rows[mask] == approx(Sizes(estimate).rows(of.sources(mask)), rel=1e-9)


def test_more_sources_than_can_be_weighed_all_are_searched() -> None:
    live = drawn(7, MOST_SOURCES + 2)
    found = best_plans(list(live.sources), live.conditions, Estimate(live), CostModel())
    assert len(found) == 1
    assert sorted(found[0].plan.aliases()) == sorted(live.sources)


@pytest.mark.parametrize("seed", range(10))
def test_local_search_comes_near_to_the_best(seed: int) -> None:
    live = drawn(seed, 7)
    of, model = subsets(live), CostModel()
    best = model.of(cheapest_trees(of, model, 1)[0][1], of.sizes.estimate).value
    weighing = model.weighing(of.sizes)
    found = whole = searched_tree(Searched(connected_tree(of)), of, weighing)
    searched, slices = weighing.of(whole.tree).value, 0
    found = Searched(connected_tree(of))
    while not found.done:
        found, slices = searched_tree(found, of, weighing, limit=1), slices + 1
    assert found == whole and slices > 1, "interrupted, it goes the same way"
    assert best <= searched * (1 + 1e-9)
    assert searched <= 1.5 * best


@dataclass(frozen=True)
class Noisy(PlansWeighed):
    """Joins weighed by one figure after the other, whatever they are."""

    figures: Iterator[float] = field(default_factory=lambda: iter(()))

    @override
    def of_joins(self, made: list[JoinMade]) -> float:
        return next(self.figures)


def test_a_search_ends_though_its_figures_never_agree() -> None:
    of, random = subsets(drawn(1, 7)), Random(5)
    weighing = Noisy(CostModel(), of.sizes, frozenset(), figures=iter(random.random, None))
    found = searched_tree(Searched(connected_tree(of)), of, weighing)
    assert found.done and found.at == ROUNDS * len(list(exchanges(found.tree)))


def test_a_search_takes_no_tree_that_is_better_by_noise_alone() -> None:
    of = subsets(drawn(1, 7))
    for factor, taken in ((1 - 0.9 * NOISE, False), (1 - 1.1 * NOISE, True)):
        weighing = Noisy(CostModel(), of.sizes, frozenset(), figures=cycle([factor, 1.0]))
        found = searched_tree(Searched(connected_tree(of)), of, weighing)
        assert (found.tree != connected_tree(of)) is taken


@pytest.mark.parametrize("seed", [1, 2, 5])
def test_om_s_left_deep_search_stays_left_deep(seed: int) -> None:
    live = drawn(seed, 4)

    def value(tree: Plan) -> float:
        return CostModel().of(tree, Estimate(live)).value

    found = left_deep_order(list(live.sources), value)
    assert value(found) <= value(next(left_deep_trees(list(live.sources))))


def test_the_current_plan_is_ranked_however_dear_it_is() -> None:
    live = drawn(2, 4)
    args = (list(live.sources), live.conditions, Estimate(live), CostModel())
    worst = max(bushy_trees("ABCD"), key=lambda tree: CostModel().of(tree, Estimate(live)).value)
    found = best_plans(*args, count=2, current=worst)
    assert [ranked.plan for ranked in found][-1] == worst
    assert found[0].cost.value < found[-1].cost.value
    assert found == best_plans(*args, count=2, current=worst)


def test_the_current_plan_comes_first_among_its_mirror_images() -> None:
    live = drawn(2, 3)
    args = (list(live.sources), live.conditions, Estimate(live), CostModel())
    (best,) = best_plans(*args, count=1)
    assert isinstance(best.plan, Join)
    mirrored = Join(best.plan.right, best.plan.left)
    assert best_plans(*args, count=1, current=mirrored)[0].plan == mirrored


def test_small_steps_are_for_trees_and_rare_matches_for_orders() -> None:
    """A multi-way join runs more operators in each step, and keeps no intermediate state."""
    keys = Condition("hash", frozenset("ABC"))
    rows = {name: SourceStatistics(1000.0, 10_000.0, WINDOW) for name in "ABC"}
    joined: dict[Sources, float] = {frozenset("AB"): 5e6, frozenset("BC"): 5e6, frozenset("AC"): 5e6}
    live = Statistics(rows, (keys,), states=joined)
    args = ("ABC", live.conditions, Estimate(live))
    assert isinstance(best_plans(*args, CostModel(weights=PLAN_OBJECTIVES["memory"]))[0].plan, MultiJoin)
    many_steps = Statistics(rows, (keys,), step=0.001)
    assert not isinstance(best_plans("ABC", (keys,), Estimate(many_steps), CostModel())[0].plan, MultiJoin)


@pytest.mark.parametrize("seed", range(12))
def test_orders_are_left_out_only_where_they_would_not_be_shown(seed: int) -> None:
    live = drawn(seed, 3 + seed % 3)
    live = replace(live, step=10.0 ** (seed % 4 - 2))
    of, model, count = subsets(live), MODELS[seed % 3], 2
    every = [*(tree for _, tree in cheapest_trees(of, model, count)), cheapest_orders(of, model), Eddy(of.aliases)]
    shown = [one.plan for one in best_plans(of.aliases, live.conditions, of.sizes, model, count=count)]
    assert shown == [one.plan for one in ranked(every, of.sizes, model, count=count)]


@pytest.mark.parametrize("rows", [0.0, float("inf")])
def test_there_are_orders_whatever_the_figures(rows: float) -> None:
    """Of a source without a window rows are kept for ever, and of two groups nothing ties one to the other."""
    sources = {name: SourceStatistics(1.0, rows, WINDOW) for name in "ABCD"}
    tied = (Condition("hash", frozenset("AB")), Condition("hash", frozenset("CD")))
    for conditions in (tied, (Condition("hash", frozenset("ABCD")),), ()):
        found = cheapest_orders(subsets(Statistics(sources, conditions)), CostModel())
        assert [sorted((start, *order)) for start, order in found.orders] == [list("ABCD")] * 4
