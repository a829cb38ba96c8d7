"""Charts: Algorithms 1 and 2, and what plans cost at other rates."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from pytest import approx

from midstream.model.codec import decode, encode
from midstream.optimizer.charts.chart import MOST_REGIONS, Axis, Chart, ChartCourse, Points, make_chart
from midstream.optimizer.charts.rates import CostAtRates
from midstream.optimizer.cost.plan_cost import CostModel
from midstream.optimizer.cost.units import CostWeights
from midstream.optimizer.estimate import Estimate
from midstream.optimizer.statistics import Condition, SourceStatistics, Statistics
from tests.unit.building import plan

AXES = (Axis("selectivity", "A", 0.0, 1.0), Axis("rate", "A", 100.0, 900.0))


def diagonal(points: Points) -> Points:
    """Two plans: one is as dear as the rate is high, the other as the selectivity is."""
    return np.stack([(points[:, 1] - 100) / 800, points[:, 0]], axis=1)


def test_a_region_has_the_plan_that_is_cheapest_at_its_centroid() -> None:
    chart = make_chart(AXES, ["low rate", "low sel"], diagonal, k=10)
    for i, j in product(range(10), repeat=2):
        centroid = np.array([[(i + 0.5) / 10, 100 + (j + 0.5) * 80]])
        rate, sel = diagonal(centroid)[0]
        assert chart.plan((i, j)) == ("low rate" if rate <= sel else "low sel"), (i, j)


def test_a_region_bounds_its_points_and_the_outermost_what_lies_outside() -> None:
    chart = make_chart(AXES, ["x", "y"], diagonal, k=4)
    assert chart.region((0.0, 100.0)) == (0, 0)
    assert chart.region((0.2499, 299.9)) == (0, 0)
    assert chart.region((0.25, 300.0)) == (1, 1)
    assert chart.region((1.0, 900.0)) == (3, 3)
    assert chart.region((-3.0, 1e9)) == (0, 3)


def test_more_partitions_follow_the_boundary_more_closely() -> None:
    points = np.random.default_rng(1).uniform((0.0, 100.0), (1.0, 900.0), (2000, 2))
    best = np.argmin(diagonal(points), axis=1)

    def fidelity(k: int) -> float:
        course, chart = ChartCourse(), make_chart(AXES, ["0", "1"], diagonal, k)
        for point, number in zip(points, best, strict=True):
            course = course.to(chart, point).against(str(number))
        assert course.judged == course.rounds == len(points)
        return course.fidelity

    coarse, middle, fine = map(fidelity, (2, 10, 40))
    assert coarse < middle < fine and fine > 0.98


def test_moves_between_regions_of_one_plan_are_no_switches() -> None:
    chart = make_chart(AXES, ["low rate", "low sel"], diagonal, k=10)
    course = ChartCourse()
    for point in [(0.95, 150), (0.95, 150), (0.85, 150), (0.05, 850)]:
        course = course.to(chart, point)
    assert (course.rounds, course.moves, course.switches, course.plan) == (4, 2, 1, "low sel")
    assert sum(course.visits.values()) == 4 and len(course.visits) == 3


def test_charts_and_courses_are_json() -> None:
    chart = make_chart(AXES, ["low rate", "low sel"], diagonal, k=3)
    course = ChartCourse().to(chart, (0.1, 200)).against("low sel")
    assert decode(Chart, json.loads(json.dumps(encode(chart)))) == chart
    assert decode(ChartCourse, json.loads(json.dumps(encode(course)))) == course


def test_a_chart_of_many_dimensions_has_fewer_partitions() -> None:
    axes = [Axis("rate", name, 0.0, 1.0) for name in "ABCDEFGH"]
    chart = make_chart(axes, ["one"], lambda points: points[:, :1], k=10)
    assert chart.k**8 == len(chart.best) <= MOST_REGIONS < (chart.k + 1) ** 8


@pytest.mark.parametrize(("axes", "k"), [(1, 10**9), (3, 10**9), (13, 10), (24, 10)])
def test_however_many_partitions_or_dimensions_are_given_a_chart_is_small(axes: int, k: int) -> None:
    def looked_at(points: Points) -> Points:
        seen.append(points.size)
        return points[:, :1]

    seen: list[int] = []
    chart = make_chart([Axis("rate", str(n), 0.0, 1.0) for n in range(axes)], ["one"], looked_at, k)
    assert len(chart.best) == chart.k**axes <= MOST_REGIONS
    assert sum(seen) < 500_000


def test_an_axis_goes_upwards() -> None:
    with pytest.raises(ValueError, match="must ascend"):
        Axis("rate", "A", 5.0, 5.0)


PLANS = [plan(text) for text in ("((A B) C)", "(A (B C))", "[A: B C | B: C A | C: B A]")]
MODEL = CostModel(weights=CostWeights(work=1.0, memory=0.3))


def live(rates: dict[str, float], sel_a: float = 1.0) -> Estimate:
    """A and B by a predicate, B and C by a key; their matches are a share of the pairs."""
    sources = {name: SourceStatistics(rate, rate * 10, 10) for name, rate in rates.items()}
    conditions = (Condition("theta", frozenset("AB")), Condition("hash", frozenset("BC")))
    a, b, c = (rates[name] * 10 for name in "ABC")
    states = {
        frozenset("AB"): a * b * 0.1 * sel_a,
        frozenset("BC"): b * c * 0.01,
        frozenset("ABC"): a * b * c * 0.001 * sel_a,
    }
    return Estimate(Statistics(sources, conditions, states=states))


def test_costs_at_other_rates_are_those_of_live_figures_at_those_rates() -> None:
    now = {"A": 5.0, "B": 20.0, "C": 10.0}
    function = CostAtRates.of(PLANS, live(now), MODEL)
    factors = {"A": np.array([1.0, 3.0, 0.5]), "C": np.array([1.0, 0.1, 4.0])}
    found = function.values(factors, {})
    for row, (a, c) in enumerate(zip(factors["A"], factors["C"], strict=True)):
        there = live({"A": 5 * a, "B": 20.0, "C": 10 * c})
        tree_by_tree = [MODEL.of(plan, there).value for plan in PLANS]
        assert found[row] == approx(tree_by_tree, rel=1e-9)


def test_with_fewer_matches_a_nested_loop_examines_as_many_pairs() -> None:
    now = {"A": 5.0, "B": 20.0, "C": 10.0}
    found = CostAtRates.of(PLANS[:2], live(now), MODEL).values({}, {"A": np.array([0.2])})
    assert found[0] == approx([MODEL.of(plan, live(now, sel_a=0.2)).value for plan in PLANS[:2]], rel=1e-9)
    assert replace(MODEL, weights=CostWeights(0.0, 1.0)).of(PLANS[0], live(now)).value < found[0][0]


def test_a_contested_region_names_all_plans_that_are_best_somewhere_in_it() -> None:
    chart = make_chart(AXES, ["low rate", "low sel"], diagonal, k=10)
    assert chart.rivals((4, 4)) == ("low rate", "low sel")
    assert chart.rivals((9, 0)) == ("low rate",)
    assert chart.rivals((0, 9)) == ("low sel",)
    assert len(chart.contested) < 30


def test_a_plan_that_somebody_else_chose_is_counted() -> None:
    chart = make_chart(AXES, ["low rate", "low sel"], diagonal, k=2)
    assert ChartCourse().to(chart, (0.4, 200.0)).plan == "low rate"
    assert ChartCourse().to(chart, (0.4, 200.0), "low sel").to(chart, (0.4, 200.0)).switches == 1
