"""The policies by charts: which plan they run as the streams change, and what they remember."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from midstream.model.codec import decode
from midstream.optimizer.alternatives import Alternatives
from midstream.optimizer.charts.chart_policy import ChartMemory, ChartPolicy
from midstream.optimizer.charts.rates import CostAtRates, left_deep_order_of
from midstream.optimizer.cost.om import JOIN_TPR, OmWeights, left_deep_cost
from midstream.optimizer.cost.plan_cost import CostModel
from midstream.optimizer.cost.units import JoinUnitCosts
from midstream.optimizer.estimate import Estimate
from midstream.optimizer.policies.lambda_chart import LambdaChart
from midstream.optimizer.policies.policy_contract import Decision, Review, WeighedPlan
from midstream.optimizer.policies.sel_lambda_chart import SelLambdaChart
from midstream.optimizer.statistics import Condition, SourceStatistics, Statistics
from midstream.plan.tree import Eddy, Join, Leaf, left_deep_trees

PLANS = {plan.notation(): plan for plan in left_deep_trees("ABC")}
MODEL = CostModel(JoinUnitCosts(operator_step=0))
STEADY = {"A": 10.0, "B": 12.0, "C": 40.0}
POLICIES = (LambdaChart(), SelLambdaChart())


def live(rates: Mapping[str, float]) -> Estimate:
    """A key of three streams; of all pairs one in a hundred joins."""
    rows = {name: rate * 10 for name, rate in rates.items()}
    sources = {name: SourceStatistics(rate, rows[name], 10) for name, rate in rates.items()}
    states = {frozenset(pair): rows[pair[0]] * rows[pair[1]] * 0.01 for pair in ("AB", "AC", "BC")}
    states[frozenset("ABC")] = rows["A"] * rows["B"] * rows["C"] * 0.0001
    return Estimate(Statistics(sources, (Condition("hash", frozenset("ABC")),), states=states))


def decided(policy: ChartPolicy, estimate: Estimate, running: str, memory: Any = None, **options: Any) -> Decision:
    costs = {name: MODEL.of(plan, estimate).value for name, plan in PLANS.items()}
    weighed = {name: WeighedPlan(name, cost, cost, cost, cost) for name, cost in costs.items()}
    others = sorted((one for name, one in weighed.items() if name != running), key=lambda one: one.cost)
    return policy.decide(
        Review(
            query="q",
            running=weighed[running],
            alternatives=tuple(others),
            sure_gain=lambda plan: 0.0,
            predict=lambda plan: None,
            time=0,
            elapsed=1.0,
            window=10.0,
            statistics=estimate.statistics,
            options=options,
            memory=json.loads(json.dumps(memory or {})),
            at_rates=lambda plans: CostAtRates.of([PLANS[plan] for plan in plans], estimate, MODEL),
        )
    )


def cheapest(estimate: Estimate) -> str:
    return min(PLANS, key=lambda name: MODEL.of(PLANS[name], estimate).value)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_best_plan_of_the_present_region_is_run(policy: ChartPolicy) -> None:
    worst = max(PLANS, key=lambda name: MODEL.of(PLANS[name], live(STEADY)).value)
    assert decided(policy, live(STEADY), worst).plan == cheapest(live(STEADY)) == "((A B) C)"
    assert decided(policy, live(STEADY), "((A B) C)").plan is None


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("contested", [0.0, 1.0])
def test_it_follows_the_streams_on_the_chart_that_was_made_at_first(policy: ChartPolicy, contested: float) -> None:
    first = decided(policy, live(STEADY), "((A B) C)", contested=contested)
    drifted = live({**STEADY, "B": 47.0})
    then = decided(policy, drifted, "((A B) C)", first.memory, contested=contested)
    assert then.plan == cheapest(drifted) != "((A B) C)"
    before, after = (decode(ChartMemory, decision.memory) for decision in (first, then))
    assert before.charts == after.charts
    moved = max(after.courses, key=lambda course: course.moves)
    # The first round, in which the streams drifted, is over: another plan would have been the best one in it.
    assert (moved.rounds, moved.moves, moved.switches, moved.fidelity) == (2, 1, 1, 0.0)
    again = decided(policy, drifted, then.plan, then.memory, contested=contested)
    assert again.plan is None and max(c.moves for c in decode(ChartMemory, again.memory).courses) == 1


@pytest.mark.parametrize("policy", POLICIES)
def test_where_a_stream_leaves_its_chart_it_is_made_anew(policy: ChartPolicy) -> None:
    first = decided(policy, live(STEADY), "((A B) C)")
    far = live({**STEADY, "A": 1000.0})
    then = decided(policy, far, "((A B) C)", first.memory)
    assert then.plan == cheapest(far)
    before, after = (decode(ChartMemory, decision.memory) for decision in (first, then))
    assert before.charts != after.charts and after.courses[0].rounds == 1


@pytest.mark.parametrize("policy", POLICIES)
def test_of_streams_that_stand_still_nothing_is_decided(policy: ChartPolicy) -> None:
    decision = decided(policy, live({"A": 0.0, "B": 12.0, "C": 40.0}), "((A C) B)")
    assert (decision.plan, decision.memory) == (None, {})


OM_WEIGHTS = ({"w_r": 0.4, "w_m": 0.6}, {"w_r": 1000.0, "w_m": 0.0})


def om_best(estimate: Estimate, w_r: float, w_m: float) -> str:
    """The cheapest left-deep plan by OM's formulas, of one plan after the other."""

    def cost(order: tuple[str, ...]) -> float:
        rows = [estimate.rows(frozenset(order[:n])).value for n in (1, 2, 3)]
        each = [estimate.rows(frozenset(alias)).value for alias in order]
        matches = [rows[n] / (rows[n - 1] * each[n]) for n in (1, 2)]
        rates = [estimate.statistics.sources[alias].rate for alias in order]
        return left_deep_cost(rates, matches, 10.0, JOIN_TPR).weighted(OmWeights(w_r, w_m))

    orders = {name: left_deep_order_of(plan) for name, plan in PLANS.items()}
    return min(orders, key=lambda name: cost(orders[name] or ()))


def doubtful(rates: Mapping[str, float]) -> Estimate:
    """A and B match seldom though they are the fast ones: what is best by work is not what is best by OM."""
    found = live(rates)
    states = {sources: rows * (0.1 if "C" in sources else 1.0) for sources, rows in found.statistics.states.items()}
    return Estimate(replace(found.statistics, states=states))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("weights", OM_WEIGHTS)
@pytest.mark.parametrize("running", PLANS)
def test_by_om_s_cost_it_runs_the_plan_that_om_s_formulas_find(
    policy: ChartPolicy, weights: dict[str, float], running: str
) -> None:
    figures = doubtful({"A": 60.0, "B": 55.0, "C": 50.0})
    found = decided(policy, figures, running, cost="om", **weights)
    assert (found.plan or running) == om_best(figures, **weights)
    again = decided(policy, figures, running, found.memory, cost="om", **weights)
    assert again.plan == found.plan


def test_weights_decide_which_plan_is_best_as_in_the_paper() -> None:
    """§3.2: two assignments of weights, two plans."""
    drawn = np.random.default_rng(0).uniform(5, 100, (50, 3)).tolist()
    many = [doubtful(dict(zip("ABC", rates, strict=True))) for rates in drawn]
    pairs = [tuple(om_best(one, **weights) for weights in OM_WEIGHTS) for one in many]
    assert any(one != other for one, other in pairs)


def test_om_weighs_no_plan_that_is_not_left_deep() -> None:
    assert left_deep_order_of(Join(Join(Leaf("A"), Leaf("B")), Join(Leaf("C"), Leaf("D")))) is None
    assert left_deep_order_of(Eddy(("A", "B", "C"))) is None


@pytest.mark.parametrize("policy", POLICIES)
def test_by_om_s_estimates_the_last_rounds_count_and_the_newest_most(policy: ChartPolicy) -> None:
    """§4.3: the mean of d + 1 rounds weighed by e^-ar."""
    om: dict[str, Any] = {"estimates": "om", "rounds": 2, "decay": 1.0}
    memory: Any = None
    for rate in (12.0, 30.0, 18.0, 24.0):
        memory = decided(policy, live({**STEADY, "B": rate}), "((A B) C)", memory, **om).memory
    watched = decode(ChartMemory, memory).watched
    estimate = watched[0][1] if isinstance(policy, LambdaChart) else watched[1][1]
    weights = np.exp([0.0, -1.0, -2.0])
    assert estimate.estimate == pytest.approx((weights * (24.0, 18.0, 30.0)).sum() / weights.sum())
    kept = decode(ChartMemory, memory)
    chart, course = (kept.charts[0], kept.courses[0]) if len(kept.charts) == 1 else (kept.charts[1], kept.courses[1])
    assert course.here == chart.region([one.estimate or 0 for one in (watched[0] if len(watched) == 1 else watched[1])])


def test_a_selectivity_is_estimated_anew_where_it_is_off_by_the_threshold() -> None:
    def selectivity_of_a(factor: float, memory: Any) -> tuple[float | None, Any]:
        figures = live(STEADY)
        states = {
            sources: rows * (factor if "A" in sources else 1) for sources, rows in figures.statistics.states.items()
        }
        changed = Estimate(replace(figures.statistics, states=states))
        memory = decided(SelLambdaChart(), changed, "((A B) C)", memory, estimates="om", threshold=0.2).memory
        return decode(ChartMemory, memory).watched[0][0].estimate, memory

    first, memory = selectivity_of_a(1.0, None)
    near, memory = selectivity_of_a(1.15, memory)
    far, _ = selectivity_of_a(1.5, memory)
    assert first == near and first is not None and far is not None and first < far < 1.5 * first


def test_there_is_a_chart_for_each_stream_or_one_for_all() -> None:
    one, many = (decode(ChartMemory, decided(p, live(STEADY), "((A B) C)", partitions=4).memory) for p in POLICIES)
    assert [len(chart.axes) for chart in one.charts] == [3] and one.charts[0].k == 4
    assert [(axis.dimension, axis.source) for chart in many.charts for axis in chart.axes] == [
        (dimension, source) for source in "ABC" for dimension in ("selectivity", "rate")
    ]


def test_no_plan_is_listed_beside_itself_written_the_other_way_round() -> None:
    running = Join(Leaf("C"), Join(Leaf("B"), Leaf("A")))
    mirrored, other = PLANS["((A B) C)"], PLANS["((A C) B)"]
    found = Alternatives(running, live(STEADY), MODEL, also=tuple(PLANS.values())).found
    trees = [one.plan for one in found if one.plan.startswith("(")]
    assert len(trees) == 3 and running.notation() in trees
    allowed = Alternatives(running, live(STEADY), MODEL, allowed=(mirrored, other))
    assert [one.plan for one in allowed.others] == [other.notation()]
