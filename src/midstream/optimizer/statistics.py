"""What is known of a running query when a migration is weighed: sizes, rates, selectivities. Pure values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import exp, log
from typing import Literal, Protocol

from midstream.optimizer.bounded import Bounded

Sources = frozenset[str]
"""A set of a query's sources, by alias: what names a state within one query."""

DEFAULT_SPEED = 5_000_000.0  # comparisons a second, where it was not measured: about what one thread does


@dataclass(frozen=True)
class SourceStatistics:
    """One source: rows a second of event time, rows alive, and the seconds for which a row is needed."""

    rate: float
    rows: float
    window: float


@dataclass(frozen=True)
class JoinStatistics:
    """What the running plan's joins did between two sets of sources.

    `matched` is the share of all pairs that the index let through to be compared (1 for a nested loop), `passed` the
    share of the compared pairs that satisfied predicates and windows; their product is Zhu's reduction factor sigma.
    """

    left: Sources
    right: Sources
    matched: float
    passed: float


@dataclass(frozen=True)
class Condition:
    """What ties sources together: a key class (`hash`), of which any two do, or a predicate over all of them."""

    kind: Literal["hash", "band", "theta"]
    sources: Sources

    def crosses(self, left: Sources, right: Sources) -> bool:
        """Return whether a join of these two sides is the first place where the condition can be tested.

        >>> Condition("hash", frozenset("ABC")).crosses(frozenset("AB"), frozenset("CD"))
        True
        >>> Condition("theta", frozenset("ABC")).crosses(frozenset("A"), frozenset("C"))
        False
        """
        if self.kind == "hash":
            return bool(self.sources & left and self.sources & right)
        return self.sources <= left | right and not self.sources <= left and not self.sources <= right


class Sampled(Protocol):
    """What samples of the rows that are alive say of joins, also of those that no plan runs."""

    def rows(self, sources: Sources) -> Bounded:
        """Estimate the living combinations of connected sources: one row of each that satisfy all conditions among
        them."""
        ...

    def compared(self, left: Sources, right: Sources) -> float:
        """Estimate the pairs of living combinations of two sides that the index of their join lets through."""
        ...


@dataclass(frozen=True)
class Statistics:
    """The live figures of one query.

    `states` has the rows alive in each intermediate state; `step` is the event time of a step in seconds, `speed` the
    comparisons that the host does in a second. `samples` answer for joins that the plan does not run.
    """

    sources: Mapping[str, SourceStatistics]
    conditions: tuple[Condition, ...] = ()
    joins: tuple[JoinStatistics, ...] = ()
    states: Mapping[Sources, float] = field(default_factory=dict)
    step: float = 1.0
    speed: float = DEFAULT_SPEED
    samples: Sampled | None = None

    @property
    def window(self) -> float:
        """The seconds after which every row that is alive now is spent: the papers' W."""
        return max((source.window for source in self.sources.values()), default=0.0)


def geometric_mean(shares: Iterable[float]) -> float:
    """Compute the geometric mean of some shares; a share of 0 counts as a trillionth.

    >>> round(geometric_mean([0.1, 0.001]), 6)
    0.01
    """
    logs = [log(max(share, 1e-12)) for share in shares]
    return exp(sum(logs) / len(logs))
