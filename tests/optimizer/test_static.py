"""`static` chooses once, and not before it knows the streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from midstream.optimizer.policies.policy_contract import Decision, Review, WeighedPlan
from midstream.optimizer.policies.static import Static
from midstream.optimizer.statistics import SourceStatistics, Statistics


def decided(rate: float, costs: Mapping[str, float], memory: Mapping[str, Any]) -> Decision:
    plans = {name: WeighedPlan(name, cost, cost, cost, cost) for name, cost in costs.items()}
    review = Review(
        query="q",
        running=plans.pop("first"),
        alternatives=tuple(plans.values()),
        sure_gain=lambda plan: 0.0,
        predict=lambda plan: None,
        time=0,
        elapsed=1.0,
        window=5.0,
        statistics=Statistics({"A": SourceStatistics(1.0, 5.0, 5.0), "B": SourceStatistics(rate, 5 * rate, 5.0)}),
        memory=memory,
    )
    return Static().decide(review)


def test_nothing_is_chosen_before_every_stream_has_had_rows() -> None:
    early = decided(0.0, {"first": 1.0, "other": 1.0}, {})
    assert (early.plan, early.memory) == (None, {})
    then = decided(2.0, {"first": 9.0, "other": 3.0}, early.memory)
    assert (then.plan, then.memory) == ("other", {"chosen": "other"})


def test_what_was_chosen_is_kept_to_also_when_a_stream_stops() -> None:
    assert decided(0.0, {"first": 1.0, "other": 9.0}, {"chosen": "other"}).plan == "other"
