"""Streams like those of the OM paper's experiments, whose trace (DEC-PKT) is not at hand (OM §5.1).

The paper makes its datasets REAL, of different coefficients of variation of the arrival rate, from one erratic trace by
a filter. So do we: arrivals of each second are drawn independently from a log-normal distribution as wide as its mean,
and averaged twice over a window of seconds, the shortest that brings the rate's coefficient of variation down to the
one wanted; what is then still missing is stretched. URND is not averaged: each second is drawn for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]

MEAN = 500.0
"""Rows a second, all that arrive on a stream (§5.2, §5.3)."""

SELECTED = 1 / 3
"""The share of the TCP trace that Q1 selects, on average."""

RAW_WIDTH = float(np.sqrt(np.log(2.0)))
"""The log-normal's sigma with which standard deviation and mean are equal."""


@dataclass(frozen=True)
class Traffic:
    """What is observed in each round: the arrival rate of every stream, a column each; and Q1's selectivity.

    `drawn_again` gives the rounds as each might have been, as far as whoever knows all seconds before it can say.
    """

    rates: Numbers
    selectivity: Numbers
    drawn_again: Callable[[np.random.Generator], Traffic] | None = field(default=None, compare=False)

    @property
    def variation(self) -> float:
        """The coefficient of variation of the first stream's rate."""
        return float(self.rates[:, 0].std() / self.rates[:, 0].mean())


def real_single(rounds: int, variation: float, seed: int) -> Traffic:
    """Generate the TCP trace in two parts averaged alike, what Q1 selects and the rest: rate and selectivity vary."""
    random = np.random.default_rng([seed, 1])
    stream = _filtered(random, rounds, np.array([SELECTED, 1 - SELECTED]) * MEAN, variation)

    def traffic(arrived: Numbers) -> Traffic:
        rate = arrived.sum(axis=1)
        return Traffic(rate[:, None], arrived[:, 0] / rate, lambda random: traffic(stream.drawn_again(random)))

    return traffic(stream.values(stream.newest))


def with_burst(traffic: Traffic, begin: int, end: int, times: float, seed: int) -> Traffic:
    """Add a sudden burst between two rounds: `times` as many rows, which nothing has averaged."""
    random = np.random.default_rng([seed, 3])
    rates, selectivity = traffic.rates.copy(), traffic.selectivity.copy()
    raw = np.stack([_raw(random, end - begin) * share for share in (SELECTED, 1 - SELECTED)], axis=1)
    rates[begin:end, 0] = times * MEAN * raw.sum(axis=1)
    selectivity[begin:end] = raw[:, 0] / raw.sum(axis=1)
    return Traffic(rates, selectivity)


def real_joined(rounds: int, variation: float, seed: int, means: Sequence[float] = (MEAN, MEAN, MEAN)) -> Traffic:
    """Generate TCP, UDP and SF of these mean rates, each averaged for itself."""
    random = np.random.default_rng([seed, 2])
    streams = [_filtered(random, rounds, np.array([mean]), variation) for mean in means]

    def traffic(columns: list[Numbers]) -> Traffic:
        rates = np.concatenate(columns, axis=1)
        return Traffic(rates, np.ones(rounds), lambda random: traffic([one.drawn_again(random) for one in streams]))

    return traffic([one.values(one.newest) for one in streams])


def urnd(rounds: int, variation: float, seed: int) -> Traffic:
    """Generate three streams of independent rounds, uniformly distributed with that coefficient of variation."""
    half = np.sqrt(3.0) * variation * MEAN

    def traffic(random: np.random.Generator) -> Traffic:
        return Traffic(random.uniform(MEAN - half, MEAN + half, (rounds, 3)), np.ones(rounds), traffic)

    return traffic(np.random.default_rng([seed, 4]))


@dataclass(frozen=True)
class FilteredStream:
    """Parts of one stream, a column each, averaged twice over a `width` of seconds and then stretched.

    `averaged` are the rounds; `newest` is what the last second of each, which no round before has seen, adds to it.
    """

    means: Numbers
    averaged: Numbers
    newest: Numbers
    width: int
    stretch: float

    def values(self, newest: Numbers) -> Numbers:
        """Compute each round, given what its newest second adds."""
        center = self.averaged.mean(axis=0)
        stretched: Numbers = center + (self.averaged - center + (newest - self.newest)) * self.stretch
        return np.maximum(stretched, self.means / 100)

    def drawn_again(self, random: np.random.Generator) -> Numbers:
        """Draw each round again with another newest second."""
        raw = np.stack([mean * _raw(random, len(self.averaged)) for mean in self.means], axis=1)
        return self.values(raw / self.width**2)


def _raw(random: np.random.Generator, rounds: int) -> Numbers:
    # Mean 1 and standard deviation 1.
    return random.lognormal(-(RAW_WIDTH**2) / 2, RAW_WIDTH, rounds)


def _filtered(random: np.random.Generator, rounds: int, means: Numbers, variation: float) -> FilteredStream:
    # The parts are averaged until their sum varies as little as wanted.
    raw = np.stack([mean * _raw(random, 2 * rounds) for mean in means], axis=1)
    for width in range(1, rounds // 2):
        averaged = np.stack([_averaged(column, width)[:rounds] for column in raw.T], axis=1)
        total = averaged.sum(axis=1)
        found = total.std() / total.mean()
        if found <= variation:
            # Of two windows of seconds, one on the other, the newest second has a share of 1 in the square.
            newest = raw[2 * (width - 1) :][:rounds] / width**2
            return FilteredStream(means, averaged, newest, width, float(variation / found))
    raise ValueError(f"{rounds} rounds are too few for a coefficient of variation of {variation}")


def _averaged(values: Numbers, width: int) -> Numbers:
    window = np.full(width, 1 / width)
    return np.convolve(np.convolve(values, window, "valid"), window, "valid")
