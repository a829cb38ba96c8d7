"""Which strategy to migrate by: each foresees its cost, the user's objective decides (`strategy="auto"`). Pure.

Beyond the papers: HybMig §3.5 says which of its methods suits which rate, Zhu §6.2 where moving state and parallel
track cross; here the cost models of all strategies are laid side by side for the query at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from midstream.model.errors import StrategyError
from midstream.optimizer.prediction import Prediction, Situation

Predict = Callable[[Situation], Prediction | None]
"""How a strategy foresees its cost; None where it cannot carry the query."""

OBJECTIVES: Mapping[str, tuple[str, ...]] = {
    "latency": ("silence", "work", "memory", "duration"),
    "work": ("work", "silence", "memory", "duration"),
    "memory": ("memory", "work", "silence", "duration"),
}
"""What is compared, in this order; the strategy's name decides between equals."""

PRECISION: Mapping[str, float] = {"silence": 0.001, "work": 1.0, "memory": 1.0, "duration": 0.001}
"""What is smaller than this is no difference: a millisecond, a comparison, a row."""


@dataclass(frozen=True)
class Considered:
    """One strategy that was weighed: what it foresees, or None, and why it was taken or not."""

    strategy: str
    prediction: Prediction | None
    reason: str

    def to_json(self) -> dict[str, Any]:
        """Encode the candidate as JSON values."""
        foreseen = self.prediction and self.prediction.to_json()
        return {"strategy": self.strategy, "predicted": foreseen, "reason": self.reason}


@dataclass(frozen=True)
class StrategyChoice:
    """The strategy to migrate by, and all that were considered, in order of name."""

    strategy: str
    prediction: Prediction
    considered: tuple[Considered, ...]


def choose(
    situation: Situation,
    objective: str,
    candidates: Mapping[str, Predict],
    refused: Mapping[str, str] | None = None,
) -> StrategyChoice:
    """Choose the candidate that serves the objective best; `refused` has the reasons of those that cannot.

    >>> from midstream.optimizer.statistics import Statistics
    >>> from midstream.plan.tree import Leaf
    >>> situation = Situation(Statistics({}), Leaf("A"), Leaf("A"))
    >>> silent, busy = Prediction(silence=2.0, work=10.0), Prediction(silence=0.0, work=50.0)
    >>> candidates = {"silent": lambda _: silent, "busy": lambda _: busy}
    >>> [choose(situation, objective, candidates).strategy for objective in ("latency", "work")]
    ['busy', 'silent']
    """
    order = checked(objective)
    foreseen = {name: predict(situation) for name, predict in candidates.items()}
    able = {name: prediction for name, prediction in foreseen.items() if prediction is not None}
    reasons = {name: "it does not say what it would cost" for name in foreseen.keys() - able.keys()}
    reasons.update(refused or {})
    if not able:
        why = "; ".join(f"{name}: {reason}" for name, reason in sorted(reasons.items()))
        raise StrategyError(f"no strategy can migrate the query ({why})", place="migrate", remedy="name another plan")
    best = min(able, key=lambda name: (*_rounded(able[name], order), name))
    for name, prediction in able.items():
        reasons[name] = "chosen" if name == best else _lost(prediction, able[best], best, order)
    considered = tuple(Considered(name, foreseen.get(name), reasons[name]) for name in sorted(reasons))
    return StrategyChoice(best, able[best], considered)


def checked(objective: object) -> tuple[str, ...]:
    """Return the figures that an objective compares, in order; raises for an unknown one."""
    if not isinstance(objective, str) or objective not in OBJECTIVES:
        raise StrategyError(
            f"unknown objective {objective!r}", place="strategy auto", remedy=f"use one of: {', '.join(OBJECTIVES)}"
        )
    return OBJECTIVES[objective]


def _rounded(prediction: Prediction, order: tuple[str, ...]) -> tuple[float, ...]:
    return tuple(round(getattr(prediction, name) / PRECISION[name]) for name in order)


def _lost(prediction: Prediction, best: Prediction, winner: str, order: tuple[str, ...]) -> str:
    # The first figure that differs decides.
    for name, mine, least in zip(order, _rounded(prediction, order), _rounded(best, order), strict=True):
        if mine != least:
            return f"more {name} than {winner}: {getattr(prediction, name):g} against {getattr(best, name):g}"
    return f"as good as {winner}, which comes first by name"
