"""The policies by charts: which plan they run as the streams change, and what they remember."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from midstream.model.codec import decode
from midstream.optimizer.alternatives import Alternatives
from midstream.optimizer.charts.chart_policy import ChartMemory, ChartPolicy
from midstream.optimizer.charts.rates import CostAtRates
from midstream.optimizer.cost.plan_cost import CostModel
from midstream.optimizer.cost.units import JoinUnitCosts
from midstream.optimizer.estimate import Estimate
from midstream.optimizer.policies.base import Decision, Review, WeighedPlan
from midstream.optimizer.policies.lambda_chart import LambdaChart
from midstream.optimizer.policies.sel_lambda_chart import SelLambdaChart
from midstream.optimizer.statistics import Condition, SourceStatistics, Statistics
from midstream.plan.tree import Join, Leaf, left_deep_trees

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


def decided(policy: ChartPolicy, estimate: Estimate, running: str, memory: Any = None, **options: float) -> Decision:
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
    assert (moved.rounds, moved.moves, moved.switches, moved.fidelity) == (2, 1, 1, 1.0)
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
