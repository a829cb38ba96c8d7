"""What is known of a running query when a migration is weighed: sizes, rates, selectivities. Pure values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Sources = frozenset[str]
"""A set of a query's sources, by alias: what names a state within one query."""

DEFAULT_SPEED = 5_000_000.0
"""Comparisons a second, where nobody measured it: about what one thread of the join kernel does."""


@dataclass(frozen=True)
class SourceStatistics:
    """One source: rows a second of event time, rows alive, and the seconds for which a row is needed."""

    rate: float
    rows: float
    window: float


@dataclass(frozen=True)
class JoinStatistics:
    """What one join of the running plan did between two sets of sources.

    `matched` is the share of all pairs that its index let through to be compared (1 for a nested loop), `passed` the
    share of the compared pairs that satisfied predicates and windows; their product is Zhu's reduction factor sigma.
    """

    left: Sources
    right: Sources
    matched: float
    passed: float


@dataclass(frozen=True)
class Condition:
    """A key class (`kind` hash: any two of its sources can be joined by it) or a predicate over all its sources."""

    kind: str
    sources: Sources


@dataclass(frozen=True)
class Statistics:
    """The live figures of one query.

    `states` has the rows alive in each intermediate state; `step` is the event time of a step in seconds, `speed` the
    comparisons that the host does in a second.
    """

    sources: Mapping[str, SourceStatistics]
    conditions: tuple[Condition, ...] = ()
    joins: tuple[JoinStatistics, ...] = ()
    states: Mapping[Sources, float] = field(default_factory=dict)
    step: float = 1.0
    speed: float = DEFAULT_SPEED

    @property
    def window(self) -> float:
        """The seconds after which every row that is alive now is spent: the papers' W."""
        return max((source.window for source in self.sources.values()), default=0.0)
