"""The contract of a policy: what it is shown at a review, and what it decides."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import midstream.optimizer.policies as room
from midstream.model.discovery import discover
from midstream.model.errors import QueryError
from midstream.optimizer.charts.rates import CostAtRates
from midstream.optimizer.statistics import Statistics


@dataclass(frozen=True)
class WeighedPlan:
    """A plan and what it would cost, in nanoseconds of work a second of event time.

    Where memory counts too, `cost`, `low` and `high` are work and bytes as the weights add them up. The true cost is
    expected between `low` and `high`; `work` and `memory` (bytes of state) are its parts.
    """

    plan: str
    cost: float
    low: float
    high: float
    work: float
    memory: float = 0.0


@dataclass(frozen=True)
class SwitchCost:
    """What a move to a plan is predicted to cost, by the strategy that suits it best.

    `work` is weighed as the cost of plans is: nanoseconds where nothing but work counts. `silence` and `duration` in
    seconds, `memory` in rows: as in `Prediction` otherwise.
    """

    strategy: str
    work: float
    silence: float = 0.0
    memory: float = 0.0
    duration: float = 0.0


@dataclass(frozen=True)
class Review:
    """What a policy is shown. Times are event times in microseconds, lengths of time in seconds.

    `alternatives` are the other plans that are allowed, the cheapest first. `sure_gain` gives what one of them saves a
    second even where the figures are wrong, `predict` what a move there costs, None where no allowed strategy can carry
    it. `real` is what the running plan has cost since the last review, None where a migration was under way or nothing
    is known. `elapsed` is the time since then, `window` the longest window, `horizon` the time for which a gain counts,
    None where the policy is to know. `memory` is what it decided to remember last, empty at first. `at_rates` is what
    plans would cost at other rates and selectivities, None where that is not known; `weigh` is what a plan would cost
    that is not among those shown. `price` is the nanoseconds that a review takes, and `lost` so many
    times that price is what the running plan has lost since the last one.
    """

    query: str
    running: WeighedPlan
    alternatives: tuple[WeighedPlan, ...]
    sure_gain: Callable[[str], float]
    predict: Callable[[str], SwitchCost | None]
    time: int
    elapsed: float
    window: float
    statistics: Statistics
    horizon: float | None = None
    real: float | None = None
    seed: int = 0
    step: int = 0
    options: Mapping[str, float | str] = field(default_factory=dict)
    memory: Mapping[str, Any] = field(default_factory=dict)
    lost: float = 0.0
    price: float = 1.0
    at_rates: Callable[[Sequence[str]], CostAtRates] | None = None
    weigh: Callable[[str], float | None] | None = None

    def weighed(self, plan: str) -> WeighedPlan | None:
        """Find a plan by its notation, if it was weighed."""
        return next((one for one in (self.running, *self.alternatives) if one.plan == plan), None)

    def cost_of(self, plan: str) -> float | None:
        """Return what a plan would cost, shown or not; None for a plan of another query or an unknown cost."""
        if (shown := self.weighed(plan)) is not None:
            return shown.cost
        return self.weigh(plan) if plan and self.weigh is not None else None


@dataclass(frozen=True)
class Decision:
    """The decision of a policy: the plan to go to, or None to stay, the reason, and its memory as JSON values.

    The next review comes when the running plan has lost `hurdle` times what a review takes. `regret` is what a plan
    saves, in nanoseconds of work a second, that is to wait for the next review: that counts as lost meanwhile.
    """

    plan: str | None
    reason: str
    memory: Mapping[str, Any] = field(default_factory=dict)
    hurdle: float = 1.0
    regret: float = 0.0


class Policy(ABC):
    """One way to decide when a query moves to another plan; found by discovery, no other file knows its name.

    A policy is pure: the same review gives the same decision, so that a step that is done again decides the same. It
    may decide for alternatives only. Whether its decision is carried out is not its affair: what runs is what the next
    review shows. `midstream.testing.check_policy` holds it to that.
    """

    name: ClassVar[str]
    options: ClassVar[Mapping[str, float | str]] = {}
    """The names of its options, each with its default value: numbers of zero or more, except for those of `words`."""

    words: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """The options that are one of a few words, with these."""

    greatest: ClassVar[float] = 1000.0
    """No option may be greater: a policy that waits forever decides nothing."""

    @abstractmethod
    def decide(self, review: Review) -> Decision:
        """Decide at a review."""

    def plans(self, aliases: Sequence[str]) -> tuple[str, ...]:
        """List plans over these sources to weigh besides those that a search finds."""
        return ()

    def refusal(self, options: Mapping[str, float | str]) -> tuple[str, str] | None:
        """Say what is wrong with options that are right one by one, and the remedy; None if nothing is."""
        return None

    def option(self, review: Review, name: str) -> float:
        """Return the value of one of the policy's numbers."""
        return float(review.options.get(name, self.options[name]))

    def word(self, review: Review, name: str) -> str:
        """Return the value of one of the policy's options that are words."""
        return str(review.options.get(name, self.options[name]))


@lru_cache(maxsize=1)
def policies() -> dict[str, Policy]:
    """Load the policies of the room and of other packages (entry points of `midstream.policies`), in order of name.

    >>> "adaptive" in policies()
    True
    """
    return discover(room, Policy, "midstream.policies")


def policy(name: object, place: str = "optimize") -> Policy:
    """Return the policy of a name; raises where there is none, naming the `place` where it is named."""
    found = policies().get(name) if isinstance(name, str) else None
    if found is None:
        raise QueryError(f"unknown policy {name!r}", place=place, remedy=f"use one of: {', '.join(policies())}")
    return found
