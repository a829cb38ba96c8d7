"""Estimates of what changes from round to round: weighted means of what was observed last (OM §4.1, §4.3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp

ROUNDS = 10
"""OM's d: how many rounds are remembered."""

DECAY = 0.5
"""OM's a: how fast a round loses its weight."""

THRESHOLD = 0.25
"""How far an observation may be from the estimate, as a share of it, before the estimate is made anew."""


@dataclass(frozen=True)
class DecayedMean:
    """The last observations of a rate or a selectivity, newest first, as a manifest keeps them.

    The estimate at round R is `sum F(R - r) G(r) / sum G(r)` with `G(r) = exp(-a r)` for r = 0 .. d (OM §4.3); the
    paper names `a` and `d` and gives no values, ours are `DECAY` and `ROUNDS`.

    >>> rate = DecayedMean().observed(10.0).observed(20.0)
    >>> round(rate.value, 2)
    16.22
    >>> DecayedMean(decay=0.0).observed(10.0).observed(20.0).value
    15.0
    """

    observations: tuple[float, ...] = ()
    rounds: int = ROUNDS
    decay: float = DECAY

    def observed(self, value: float) -> DecayedMean:
        """The mean with one more round; of the rounds before it the last `rounds` are kept."""
        return replace(self, observations=(value, *self.observations)[: self.rounds + 1])

    @property
    def value(self) -> float:
        """The estimate; 0 before the first observation."""
        weights = [exp(-self.decay * r) for r in range(len(self.observations))]
        total = sum(weights)
        return sum(f * g for f, g in zip(self.observations, weights, strict=True)) / total if total else 0.0

    @property
    def variance(self) -> float:
        """How far observations were from the estimate, squared, by the same weights."""
        weights = [exp(-self.decay * r) for r in range(len(self.observations))]
        mean, total = self.value, sum(weights)
        squares = ((f - mean) ** 2 * g for f, g in zip(self.observations, weights, strict=True))
        return sum(squares) / total if total else 0.0


@dataclass(frozen=True)
class Reestimated:
    """An estimate that stays until what is observed differs from it by more than a threshold (OM §4.3, joins).

    >>> kept = Reestimated(0.1)
    >>> kept.is_off(0.11), kept.is_off(0.2)
    (False, True)
    """

    estimate: float
    threshold: float = THRESHOLD

    def is_off(self, observed: float) -> bool:
        """Whether the estimate must be made anew."""
        return abs(observed - self.estimate) > self.threshold * abs(self.estimate)
