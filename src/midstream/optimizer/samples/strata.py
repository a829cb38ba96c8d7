"""The sample of a query's sources as columns: for how many rows and keys each row and key of it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from midstream.model.window import Clock
from midstream.optimizer.bounded import Bounded
from midstream.optimizer.samples.drawn import Words

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
    """The sampled rows of a source: for how many rows each stands, and its key in each class, as a place there."""

    weights: Numbers
    places: Mapping[str, Words]
    valid_from: Mapping[Clock, Words]
    valid_to: Mapping[Clock, Words]
    payload: Mapping[str, pa.Array]
    alive: Bounded

    @cached_property
    def uncertain(self) -> Numbers | None:
        """The share of each row's square that is variance; None where all rows are present."""
        return None if bool((self.weights == 1).all()) else 1 - 1 / self.weights


@dataclass(frozen=True)
class Strata:
    """Samples of all sources of a query, and the keys that they have in common."""

    sources: Mapping[str, SampledSource]
    keys: Mapping[str, SampledKeys]


def sums(places: Words, values: Numbers, count: int) -> Numbers:
    """Sum the values at each of `count` places."""
    return np.asarray(np.bincount(places, values, count), np.float64)


def sum_of_squares(values: Numbers, weights: Numbers | float = 1.0) -> float:
    """Add up the weighed squares of some values, alike on every number of threads (`np.dot` is not).

    >>> sum_of_squares(np.array([1.0, 2.0]), np.array([1.0, 0.5]))
    3.0
    """
    return float((weights * values * values).sum())
