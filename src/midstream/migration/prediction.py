"""What a strategy is asked to foresee, and what it foresees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from midstream.migration.statistics import Statistics
from midstream.plan.decompose import MigrationTask
from midstream.plan.tree import Plan


@dataclass(frozen=True)
class Situation:
    """A migration that is thought of: the live figures, both plans, the pieces decomposition leaves, the options."""

    statistics: Statistics
    old: Plan
    new: Plan
    tasks: tuple[MigrationTask, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Prediction:
    """What a migration will cost.

    `silence`: the longest that a result is held back, in seconds. `work`: the comparisons of the migration itself.
    `memory`: the most state rows beyond those of one plan. `duration`: seconds until the new plan stands alone.

    >>> Prediction(work=12.0).to_json()
    {'silence': 0.0, 'work': 12.0, 'memory': 0.0, 'duration': 0.0}
    """

    silence: float = 0.0
    work: float = 0.0
    memory: float = 0.0
    duration: float = 0.0

    def to_json(self) -> dict[str, float]:
        """The prediction as JSON values."""
        return asdict(self)
