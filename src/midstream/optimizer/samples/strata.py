"""The sample of a query's sources as columns: for how many rows and keys each row and key of it stands."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from midstream.model.window import Clock
from midstream.optimizer.bounded import Bounded
from midstream.optimizer.samples.hashing import Words

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SampledKeys:
    """The keys of a class in the samples: for how many keys each stands, the last for all NULLs."""

    name: str
    sources: frozenset[str]
    factors: Numbers

    @property
    def uncertain(self) -> Numbers:
        """The share of each key's square that is variance, because it was kept by chance."""
        return 1 - 1 / self.factors


@dataclass(frozen=True)
class SampledSource:
    """The sampled rows of a source: for how many rows each stands, and its key in each class, as a place there.

    A class may have rows that are drawn by themselves, whatever their rare key in it is: `by_row` has by class for each
    row what its weight is multiplied by where the class is to be left out, and where it ties sources. `counted` says
    for each row which rows stand together for as many as were counted, the last of these numbers for none.
    """

    weights: Numbers
    places: Mapping[str, Words]
    valid_from: Mapping[Clock, Words]
    valid_to: Mapping[Clock, Words]
    payload: Mapping[str, pa.Array]
    alive: Bounded
    counted: Words
    by_row: Mapping[str, tuple[Numbers, Numbers]]

    def weighed(self, tying: Container[str]) -> Numbers:
        """Return for how many rows each stands where these classes tie sources; the keys' factors are yet to come."""
        found = self.weights
        for name, (alone, tied) in self.by_row.items():
            found = found * (tied if name in tying else alone)
        return found

    def variance(self, values: Numbers) -> float:
        """Compute the variance of a sum over the rows: how many rows stand together for a count does not vary."""
        rows = np.bincount(self.counted)
        several = (rows > 1) & (np.arange(len(rows)) > 0)
        means = np.where(several, sums(self.counted, values, len(rows)) / np.maximum(rows, 1), 0.0)
        more = np.where(several, rows / np.maximum(rows - 1, 1), 1.0)
        return sum_of_squares(values - means[self.counted], self.uncertain * more[self.counted])

    @cached_property
    def uncertain(self) -> Numbers:
        """The share of each row's square that is variance, because it was kept by chance."""
        return np.maximum(1 - 1 / self.weights, 0.0)

    @cached_property
    def varies(self) -> bool:
        """Whether some rows are missing."""
        return bool(self.uncertain.any())


@dataclass(frozen=True)
class Strata:
    """Samples of all sources of a query, and the keys that they have in common."""

    sources: Mapping[str, SampledSource]
    keys: Mapping[str, SampledKeys]

    @property
    def is_whole(self) -> bool:
        """Whether each row stands for itself alone."""
        return all([bool((one.weights == 1).all()) for one in self.sources.values()]) and all(
            [bool((one.factors == 1).all()) for one in self.keys.values()]
        )


def sums(places: Words, values: Numbers, count: int) -> Numbers:
    """Sum the values at each of `count` places."""
    return np.asarray(np.bincount(places, values, count), np.float64)


def sum_of_squares(values: Numbers, weights: Numbers | float = 1.0) -> float:
    """Add up the weighed squares of some values, alike on every number of threads (`np.dot` is not).

    >>> sum_of_squares(np.array([1.0, 2.0]), np.array([1.0, 0.5]))
    3.0
    """
    return float((weights * values * values).sum())
