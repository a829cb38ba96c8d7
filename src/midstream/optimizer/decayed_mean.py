"""Estimates of what changes from round to round: weighted means of what was observed last (OM §4.1, §4.3)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]

ROUNDS = 10  # OM's d: how many rounds are remembered
DECAY = 0.5  # OM's a: how fast a round loses its weight


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
        """Add a round; of the rounds before it the last `rounds` are kept."""
        return replace(self, observations=(value, *self.observations)[: self.rounds + 1])

    @property
    def value(self) -> float:
        """The estimate; 0 before the first observation."""
        weights = fading(len(self.observations), self.decay)
        return float(weights @ np.array(self.observations) / weights.sum()) if self.observations else 0.0


def decayed_means(observed: Numbers, rounds: int = ROUNDS, decay: float = DECAY) -> Numbers:
    """Estimate each row of observations from those before it; the first one is known.

    >>> decayed_means(np.array([[10.0], [20.0], [0.0]]), decay=0.0, rounds=1).ravel().tolist()
    [10.0, 10.0, 15.0]
    """
    weights = fading(rounds + 1, decay)
    before = np.concatenate([np.repeat(observed[:1], rounds + 1, axis=0), observed[:-1]])
    looked_back = [before[rounds - r : rounds - r + len(observed)] * weights[r] for r in range(rounds + 1)]
    means: Numbers = np.sum(looked_back, axis=0) / weights.sum()
    return means


def fading(count: int, decay: float) -> Numbers:
    """Compute OM's `G(r) = exp(-a r)` for r = 0 .. `count` - 1."""
    weights: Numbers = np.exp(-decay * np.arange(count))
    return weights
