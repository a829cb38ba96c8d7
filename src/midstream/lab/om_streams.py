"""Streams like those of the OM paper's experiments, whose trace (DEC-PKT) is not at hand (OM §5.1).

The paper makes its datasets REAL, of different coefficients of variation of the arrival rate, from one erratic trace by
a filter. So do we: arrivals of each second are drawn independently from a log-normal distribution as wide as its mean,
and averaged twice over a window of seconds, the shortest that brings the rate's coefficient of variation down to the
one wanted; what is then still missing is stretched. URND is not averaged: each second is drawn for itself.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    """What is observed in each round: the arrival rate of every stream, a column each; and Q1's selectivity."""

    rates: Numbers
    selectivity: Numbers

    @property
    def variation(self) -> float:
        """The coefficient of variation of the first stream's rate."""
        return float(self.rates[:, 0].std() / self.rates[:, 0].mean())


def real_single(rounds: int, variation: float, seed: int) -> Traffic:
    """The TCP trace in two parts, what Q1 selects and the rest, both averaged alike: rate and selectivity both vary."""
    random = np.random.default_rng([seed, 1])
    parts = np.array([SELECTED, 1 - SELECTED]) * MEAN
    arrived = _filtered(random, rounds, parts, variation)
    rate = arrived.sum(axis=1)
    return Traffic(rate[:, None], arrived[:, 0] / rate)


def with_burst(traffic: Traffic, begin: int, end: int, times: float, seed: int) -> Traffic:
    """The same with a sudden burst between two rounds: so many times the rows, which nothing has averaged."""
    random = np.random.default_rng([seed, 3])
    rates, selectivity = traffic.rates.copy(), traffic.selectivity.copy()
    raw = np.stack([_raw(random, end - begin) * share for share in (SELECTED, 1 - SELECTED)], axis=1)
    rates[begin:end, 0] = times * MEAN * raw.sum(axis=1)
    selectivity[begin:end] = raw[:, 0] / raw.sum(axis=1)
    return Traffic(rates, selectivity)


def real_joined(rounds: int, variation: float, seed: int) -> Traffic:
    """TCP, UDP and SF, each averaged for itself."""
    random = np.random.default_rng([seed, 2])
    columns = [_filtered(random, rounds, np.array([MEAN]), variation)[:, 0] for _ in range(3)]
    return Traffic(np.stack(columns, axis=1), np.ones(rounds))


def urnd(rounds: int, variation: float, seed: int) -> Traffic:
    """Three streams of independent rounds, uniformly distributed with that coefficient of variation."""
    random = np.random.default_rng([seed, 4])
    half = np.sqrt(3.0) * variation * MEAN
    return Traffic(random.uniform(MEAN - half, MEAN + half, (rounds, 3)), np.ones(rounds))


def _raw(random: np.random.Generator, rounds: int) -> Numbers:
    """Independent rounds of mean 1 and standard deviation 1."""
    return random.lognormal(-(RAW_WIDTH**2) / 2, RAW_WIDTH, rounds)


def _filtered(random: np.random.Generator, rounds: int, means: Numbers, variation: float) -> Numbers:
    """Parts of one stream, a column each, averaged until their sum varies as little as wanted."""
    raw = np.stack([mean * _raw(random, 2 * rounds) for mean in means], axis=1)
    for width in range(1, rounds // 2):
        averaged = np.stack([_averaged(column, width)[:rounds] for column in raw.T], axis=1)
        total = averaged.sum(axis=1)
        found = total.std() / total.mean()
        if found <= variation:
            stretched: Numbers = averaged.mean(axis=0) + (averaged - averaged.mean(axis=0)) * (variation / found)
            return np.maximum(stretched, means / 100)
    raise ValueError(f"{rounds} rounds cannot be averaged down to a coefficient of variation of {variation}")


def _averaged(values: Numbers, width: int) -> Numbers:
    window = np.full(width, 1 / width)
    return np.convolve(np.convolve(values, window, "valid"), window, "valid")
