"""The contract between the step driver and the strategies that carry a running query from plan to plan.

The driver owns time, order, watermark and commit; a strategy owns only the movement of state. Whatever runs a query is
a `Box`: a plan, or a migration under way, which is nothing else to its surroundings. So one migration may begin while
another runs: the running one is its old box.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import midstream.migration as room
from midstream.migration.option import DECOMPOSE, Option
from midstream.model.discovery import OpenSet
from midstream.model.errors import StrategyError
from midstream.optimizer.prediction import Prediction, Situation
from midstream.plan.tree import Plan
from midstream.runtime.box import Box, PlanBox
from midstream.runtime.lane import Lane


@dataclass(frozen=True)
class MigrationRequest:
    """A migration as a strategy accepts or refuses it, before anything is touched.

    `plain`: the answer is the join's results as they come, neither an aggregate nor a difference. `timed`: no window
    counts rows.
    """

    query: str
    old: str
    new: Plan
    stateful: bool
    options: Mapping[str, Any]
    plain: bool = True
    timed: bool = True


class Strategy(ABC):
    """One way to carry a running query to another plan; found by discovery, named by no other file."""

    name: ClassVar[str]
    options: ClassVar[tuple[Option, ...]] = (DECOMPOSE,)
    feeds: ClassVar[Literal["at once", "beside", "queue"] | None] = None
    """How it brings a user's operator to where another one is; None where it would have to look into its state."""

    def refusal(self, move: MigrationRequest) -> str | None:
        """Return why the strategy cannot carry this box, or None if it can."""
        return None

    def wrong(self, options: Mapping[str, Any]) -> str | None:
        """Validate the values of the options given; their names have been checked.

        Returns: what is wrong, or None.

        >>> from midstream.migration.strategy_contract import strategy
        >>> strategy("ghm").wrong({"budget": -1})
        'budget is a number of comparisons a step, at least 1, not -1'
        """
        given = (option.wrong(options[option.name]) for option in self.options if option.name in options)
        return next((wrong for wrong in given if wrong), None)

    def predict(self, situation: Situation) -> Prediction | None:
        """Estimate the cost from live figures, or return None where the strategy cannot carry the query or would never
        end."""
        return None

    @abstractmethod
    def begin(self, old: Box, new: PlanBox, lane: Lane, options: Mapping[str, Any], mark: str) -> Box:
        """Take over at the beginning of a step, before its rows are seen; the box returned runs from this step on.

        `mark` is unique among all migrations.
        """


_SET = OpenSet(
    room, Strategy, "midstream.strategies", "unknown strategy", place="migrate", error=StrategyError, also=("auto",)
)
discovered, strategy = _SET.all, _SET.named


def strategies() -> tuple[str, ...]:
    """List the names of all strategies, sorted.

    >>> "moving_state" in strategies()
    True
    """
    return tuple(discovered())
