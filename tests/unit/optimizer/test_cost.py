"""What plans cost: OM's example, our own model by worked numbers, unit costs from timings."""

from __future__ import annotations

import pytest
from pytest import approx

from midstream.optimizer.cost.calibration import TimedWork, corrected, fitted, slowed, units_from_json, units_to_json
from midstream.optimizer.cost.om import OmOperator, OmWeights, Queueing, left_deep_cost, pipeline_cost
from midstream.optimizer.cost.plan_cost import CostModel
from midstream.optimizer.cost.units import CostWeights, JoinUnitCosts
from midstream.optimizer.estimate import Estimate
from midstream.optimizer.statistics import Condition, SourceStatistics, Statistics
from tests.unit.building import plan

O_1, O_2 = OmOperator("o_1", sel=0.5, tpr=500), OmOperator("o_2", sel=0.1, tpr=50)
PLAN_1 = pipeline_cost([O_1, O_2], 500, 1, Queueing.EXAMPLE)
PLAN_2 = pipeline_cost([O_2, O_1], 500, 1, Queueing.EXAMPLE)

UNITS = JoinUnitCosts(
    comparison=1, result=10, insert=100, probe=1000, route=0, operator_step=1e6, row_bytes=3, reference_bytes=5
)
KEY = Condition("hash", frozenset("ABC"))
SOURCES = {name: SourceStatistics(rate=2.0, rows=20.0, window=10.0) for name in "ABC"}
JOINED = {frozenset("AB"): 40.0, frozenset("BC"): 70.0, frozenset("AC"): 90.0, frozenset("ABC"): 200.0}
LIVE = Estimate(Statistics(SOURCES, (KEY,), states=JOINED, step=0.5))


@pytest.mark.parametrize(
    ("weights", "cost_1", "cost_2"), [(OmWeights(0.1, 0.9), 697.52, 517.54), (OmWeights(20_000, 2), 5550, 9150)]
)
def test_the_example_of_om_3_2(weights: OmWeights, cost_1: float, cost_2: float) -> None:
    assert (PLAN_1.c_r, PLAN_1.c_m, PLAN_2.c_r, PLAN_2.c_m) == approx((5.0, 775, 2.5, 575))
    assert PLAN_1.weighted(weights) == approx(cost_1)
    assert PLAN_2.weighted(weights) == approx(cost_2)


def test_section_4_1_has_other_numbers_than_its_own_example() -> None:
    """Input waits in front of the slow operator, and no rate is bounded: of either order the same rows come out."""
    one, two = pipeline_cost([O_1, O_2], 500, 1), pipeline_cost([O_2, O_1], 500, 1)
    assert (one.c_r, two.c_r) == approx((25, 25))
    assert (one.c_m, two.c_m) == approx((500 + 250 + 1250 + 25, 5000 + 50 + 5 + 25))


def test_a_join_waits_for_the_mean_of_its_inputs() -> None:
    """§3 and §4.1: sel lambda_L lambda_R W / (C_L lambda_L + C_R lambda_R), with 1 / tpr a row."""
    cost = left_deep_cost([100, 300], [0.01], w=2, tpr=1000)
    rate = 0.01 * 100 * 300 * 2 / (400 / 1000)
    assert (cost.c_r, cost.c_m) == approx((rate, 200 * 200 * 2 / 1000 + rate * 2))


def test_a_tree_costs_what_its_joins_do_and_keep() -> None:
    """Twice a second; a tenth of each source is new in a second, so of a pair two tenths."""
    bases = 3 * 2 * 100
    inner = (2 + 2) * 1000 + 8 * 1 + 8 * 10 + 8 * 100 + 2e6
    root = (8 + 2) * 1000 + 60 * 1 + 60 * 10 + 2e6
    cost = CostModel(UNITS, CostWeights(work=1.0, memory=2.0)).of(plan("((A B) C)"), LIVE)
    assert (cost.work, cost.memory) == approx((bases + inner + root, 60 * 8 + 40 * 13))
    assert cost.value == approx(cost.work + 2 * cost.memory)


def test_probing_orders_keep_nothing_and_probe_again() -> None:
    orders = CostModel(UNITS).of(plan("[A: B C | B: A C | C: A B]"), LIVE)
    a = 2000 + 4 + 40 + (4 * 1000 + 20 + 200)
    c = 2000 + 9 + 90 + (9 * 1000 + 20 + 200)
    assert orders.work == approx(600 + 2 * a + c + 6 * 2e6)
    assert orders.memory == approx(60 * 8)


def test_an_eddy_pays_for_its_routing() -> None:
    routed = JoinUnitCosts(**{**units_to_json(UNITS), "route": 7.0})
    free, dear = (CostModel(units).of(plan("eddy(A B C)"), LIVE).work for units in (UNITS, routed))
    assert dear - free == approx(7 * (2 + 4 + 2 + 4 + 2 + 7))


def test_what_another_query_keeps_is_free_with_all_that_makes_it() -> None:
    alone = CostModel(UNITS).of(plan("((A B) C)"), LIVE)
    beside = CostModel(UNITS).of(plan("((A B) C)"), LIVE, kept=frozenset({frozenset("AB")}))
    root = (8 + 2) * 1000 + 60 * 1 + 60 * 10 + 2e6
    assert beside.work == approx(root + 200)
    assert beside.memory == approx(20 * 8)
    assert alone.work > beside.work


def test_bounds_of_sizes_are_bounds_of_costs() -> None:
    guessed = Estimate(Statistics(SOURCES, (KEY,)))
    cost = CostModel(UNITS).of(plan("((A B) C)"), guessed)
    assert cost.low < cost.value < cost.high
    counted = CostModel(UNITS).of(plan("((A B) C)"), LIVE)
    assert counted.low == counted.value == counted.high


def test_a_nested_loop_examines_all_pairs() -> None:
    theta = Condition("theta", frozenset("AB"))
    live = Estimate(Statistics(SOURCES, (theta,), states={frozenset("AB"): 40.0}))
    (_, _, joined) = CostModel(JoinUnitCosts(1, 0, 0, 0, 0, 0)).joins(plan("(A B)"), live)
    assert joined.work == approx((2 + 2) * 20)


def test_units_are_found_again_in_timings_made_of_them() -> None:
    true = JoinUnitCosts(comparison=3, result=50, insert=0, probe=200, operator_step=1000)
    work = [(10, 1, 5, 2, 3), (10_000, 3, 50, 40, 3), (500, 400, 20, 10, 30), (0, 0, 0, 1, 9), (9, 9, 9, 9, 1)]
    timings = [
        TimedWork(c * 3 + r * 50 + p * 200 + o * 1000, comparisons=c, results=r, inserts=i, probes=p, operator_steps=o)
        for c, r, i, p, o in work
    ]
    found = fitted(timings)
    assert [found.comparison, found.result, found.insert, found.probe, found.operator_step] == approx(
        [true.comparison, true.result, true.insert, true.probe, true.operator_step], abs=1e-6
    )
    assert found.route == JoinUnitCosts().route, "what was never done keeps its default"


def test_no_unit_is_below_nothing() -> None:
    found = fitted([TimedWork(100, comparisons=10, results=1), TimedWork(100, comparisons=10, results=9)])
    assert (found.comparison, found.result) == approx((10, 0), abs=1e-9)
    assert found.result >= 0


def test_units_follow_the_real_cost_of_steps() -> None:
    slowness = 1.0
    for _ in range(100):
        slowness = corrected(slowness, foreseen=20.0, real=60.0)
    units = slowed(JoinUnitCosts(), slowness)
    assert units.comparison == approx(60, rel=0.01)
    assert units.comparison / units.probe == approx(JoinUnitCosts().comparison / JoinUnitCosts().probe)
    assert units.row_bytes == JoinUnitCosts().row_bytes, "only time is corrected"
    assert corrected(slowness, 1.0, 1e9) < 1.2 * slowness, "one step that was held up says little"
    assert corrected(slowness, 1.0, -1.0) > 0.8 * slowness and corrected(slowness, 0.0, 1.0) == slowness
    assert corrected(slowness, -20.0, -60.0) == approx(slowness, rel=0.01), "a step that does less takes less"


def test_units_are_read_again() -> None:
    units = JoinUnitCosts(comparison=7.5)
    assert units_from_json(units_to_json(units)) == units
    wrongs: tuple[object, ...] = ({"comparisons": 1}, [], {"probe": -1})
    for wrong in wrongs:
        with pytest.raises(ValueError, match="probe"):
            units_from_json(wrong)
