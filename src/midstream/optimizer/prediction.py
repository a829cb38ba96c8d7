"""A migration that is considered, and what a strategy predicts of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from midstream.optimizer.estimate import Estimate
from midstream.optimizer.statistics import Statistics
from midstream.plan.decompose import Task, decompose
from midstream.plan.tree import Plan


@dataclass(frozen=True)
class Situation:
    """A migration that is thought of: the live figures, both plans, the pieces decomposition leaves, the options.

    `left` are the plans that migrations under way leave, whose joins run until these end, each with whether its states
    are kept whole.
    """

    statistics: Statistics
    old: Plan
    new: Plan
    tasks: tuple[Task, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    left: tuple[tuple[Plan, bool], ...] = ()
    figured: dict[Task, Any] = field(default_factory=dict, compare=False, repr=False)  # each task once, for all

    @property
    def pieces(self) -> tuple[Task, ...]:
        """The tasks, or the whole as one where the options ask for that."""
        in_one = self.tasks and not self.options.get("decompose", True)
        return decompose(self.old, self.new, at=()) if in_one else self.tasks

    @cached_property
    def estimate(self) -> Estimate:
        """The estimate of what plans of the query would hold and do, by these figures."""
        return Estimate(self.statistics)


@dataclass(frozen=True)
class Prediction:
    """What a migration will cost.

    `silence`: the longest that results wait for it, in seconds. `work`: the comparisons that would not be made without
    it, as `MigrationEnded` counts them. `memory`: the most state rows kept for it alone. `duration`: seconds until the
    new plan stands alone.

    >>> Prediction(work=12.0).to_json()
    {'silence': 0.0, 'work': 12.0, 'memory': 0.0, 'duration': 0.0}
    """

    silence: float = 0.0
    work: float = 0.0
    memory: float = 0.0
    duration: float = 0.0

    def to_json(self) -> dict[str, float]:
        """Encode the prediction as JSON values."""
        return {name: round(value, 6) for name, value in asdict(self).items()}
