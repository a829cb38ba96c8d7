"""The chooser: objectives, ties, reasons; and situations in which different strategies are best."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from midstream.migration import predictions
from midstream.model.errors import StrategyError
from midstream.optimizer.chooser import OBJECTIVES, Predict, StrategyChoice, choose
from midstream.optimizer.prediction import Prediction, Situation
from midstream.optimizer.statistics import Condition, JoinStatistics, SourceStatistics, Statistics
from midstream.plan.decompose import decompose
from tests.unit.building import plan

STRATEGIES: Mapping[str, Predict] = {
    "moving_state": predictions.rebuild_all,
    "parallel_track": predictions.both_plans,
    "hybmig": predictions.shifting,
    "jisc": predictions.on_demand,
    "gpt": predictions.beside,
}

W = 600.0
THETA = 1.0
"""What the index of a nested loop lets through."""


def situation(rates: tuple[float, float, float], first: tuple[float, float], second: tuple[float, float]) -> Situation:
    """From ((A B) C) to (A (B C)); `first` is what AB's index lets through and its predicates pass, `second` C's."""
    names = [frozenset(name) for name in ("A", "B", "C", "AB", "BC")]
    sources = {name: SourceStatistics(rate, rate * W, W) for name, rate in zip("ABC", rates, strict=True)}
    conditions = tuple(
        Condition("theta" if matched == THETA else "hash", sides)
        for (matched, _), sides in zip((first, second), names[3:], strict=True)
    )
    joins = (JoinStatistics(names[0], names[1], *first), JoinStatistics(names[3], names[2], *second))
    old, new = plan("((A B) C)"), plan("(A (B C))")
    return Situation(Statistics(sources, conditions, joins, speed=1e6), old, new, decompose(old, new))


def fixed(**figures: Prediction | None) -> Mapping[str, Predict]:
    return {name: (lambda _, p=prediction: p) for name, prediction in figures.items()}  # type: ignore[misc]


SOME = situation((1, 1, 1), (0.1, 1), (0.1, 1))


def chosen(objective: str, **figures: Prediction | None) -> StrategyChoice:
    return choose(SOME, objective, fixed(**figures))


def test_each_objective_looks_at_its_own_figure_first() -> None:
    figures = {
        "quiet": Prediction(silence=0, work=9000, memory=900),
        "thrifty": Prediction(silence=2, work=10, memory=800),
        "small": Prediction(silence=3, work=5000, memory=0),
    }
    assert [chosen(objective, **figures).strategy for objective in OBJECTIVES] == ["quiet", "thrifty", "small"]


def test_the_next_figure_decides_between_equals_and_then_the_name() -> None:
    a, b = Prediction(silence=1, work=5), Prediction(silence=1, work=4)
    assert chosen("latency", x=a, y=b).strategy == "y"
    assert chosen("latency", y=b, x=b).strategy == "x"


def test_differences_below_the_precision_do_not_decide() -> None:
    """Half a millisecond of silence does not outweigh a thousand comparisons."""
    assert chosen("latency", x=Prediction(silence=0.0004, work=10), y=Prediction(silence=0, work=1000)).strategy == "x"
    assert chosen("latency", x=Prediction(silence=0.004, work=10), y=Prediction(silence=0, work=1000)).strategy == "y"


def test_every_candidate_has_its_reason() -> None:
    choice = choose(
        SOME,
        "latency",
        fixed(a=Prediction(silence=2.0), b=Prediction(), c=Prediction(), d=None),
        {"e": "the box is stateful"},
    )
    assert {c.strategy: c.reason for c in choice.considered} == {
        "a": "more silence than b: 2 against 0",
        "b": "chosen",
        "c": "as good as b, which comes first by name",
        "d": "it does not say what it would cost",
        "e": "the box is stateful",
    }
    assert [c.strategy for c in choice.considered if c.prediction is None] == ["d", "e"]


def test_an_unknown_objective_names_the_known_ones() -> None:
    for objective in ("speed", 3, None):
        with pytest.raises(StrategyError, match="use one of: latency, work, memory"):
            choose(SOME, objective, fixed(a=Prediction()))  # type: ignore[arg-type]


def test_where_no_strategy_can_the_error_gives_the_reasons() -> None:
    with pytest.raises(StrategyError, match=r"x: it does not say.*y: stateful"):
        choose(SOME, "work", fixed(x=None), {"y": "stateful"})


@pytest.mark.parametrize(
    ("rates", "first", "second", "best"),
    [
        # Nested loops over a long window: to rebuild takes 144 s, the old plan's share is 3 million comparisons, and to
        # complete what new rows ask for is less than that.
        ((0.1, 20, 20), (THETA, 0.001), (THETA, 0.001), ("jisc", "jisc", "jisc")),
        # A dear old plan and a state that all rows ask for: the new plan beside it makes nobody wait.
        ((20, 20, 20), (0.01, 1), (THETA, 0.001), ("gpt", "jisc", "jisc")),
        # Many keys, of which few are asked for while they live.
        ((1, 10, 10), (0.001, 1), (0.001, 1), ("jisc", "jisc", "jisc")),
    ],
)
def test_objectives_lead_to_different_strategies(
    rates: tuple[float, float, float], first: tuple[float, float], second: tuple[float, float], best: tuple[str, ...]
) -> None:
    """The objectives in order: latency, work, memory."""
    there = situation(rates, first, second)
    assert tuple(choose(there, objective, STRATEGIES).strategy for objective in OBJECTIVES) == best


def test_a_small_rebuild_is_done_at_once_where_nothing_else_is_less() -> None:
    """Of moving state and the strategies that keep the old plan running."""
    few = {name: STRATEGIES[name] for name in ("moving_state", "parallel_track", "hybmig", "gpt")}
    small = situation((10, 0.1, 0.1), (0.5, 1), (0.01, 1))
    assert {choose(small, objective, few).strategy for objective in OBJECTIVES} == {"moving_state"}
