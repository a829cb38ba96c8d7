"""A predicate between the samples of two sources that is no equality: which rows find each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from midstream.language.evaluate import evaluate, holds
from midstream.language.expression import Column
from midstream.language.query import BandPredicate, Predicate
from midstream.optimizer.samples.drawn import Mask, Words
from midstream.optimizer.samples.strata import Numbers, SampledSource
from midstream.state.keys import band_codes

Table = npt.NDArray[np.float32]

BLOCK = 1 << 20
"""Pairs that a predicate is evaluated on at once."""

PROBED = 1 << 12
"""Pairs of a band that are looked at to learn how many its predicate accepts."""


class Link(Protocol):
    """What of one source is found by each row of the other."""

    @property
    def sources(self) -> frozenset[str]:
        """The two sources."""
        ...

    def found_by(self, alias: str, values: Numbers) -> Numbers:
        """Sum for each row of this source the values of the other's rows that it is paired with."""
        ...


@dataclass(frozen=True)
class BandLink:
    """`low <= left - right <= high`: sums over ranges of a sorted column; no pair is ever made.

    The bounds may be wider than the predicate, so a few pairs are looked at and the rest taken to be like them.
    """

    sources: frozenset[str]
    left: str
    left_codes: Numbers
    right_codes: Numbers
    low: float
    high: float
    accepted: float

    def found_by(self, alias: str, values: Numbers) -> Numbers:
        """Sum for each row of this source the values of the other's rows within the band."""
        order = self._right_order if alias == self.left else self._left_order
        begin, end = self._right_ranges if alias == self.left else self._left_ranges
        sums = np.concatenate([np.zeros(1), np.cumsum(values[order])])
        return np.asarray((sums[end] - sums[begin]) * self.accepted, np.float64)

    @cached_property
    def _left_order(self) -> Words:
        return _sorted(self.left_codes)

    @cached_property
    def _right_order(self) -> Words:
        return _sorted(self.right_codes)

    @cached_property
    def _right_ranges(self) -> tuple[Words, Words]:
        return _ranges(self.left_codes, self.right_codes[self._right_order], -self.high, -self.low)

    @cached_property
    def _left_ranges(self) -> tuple[Words, Words]:
        return _ranges(self.right_codes, self.left_codes[self._left_order], self.low, self.high)


@dataclass(frozen=True)
class MatrixLink:
    """Any other predicate: every pair of the samples, evaluated once."""

    sources: frozenset[str]
    left: str
    pairs: Table

    def found_by(self, alias: str, values: Numbers) -> Numbers:
        """Sum for each row of this source the values of the other's rows that satisfy the predicate."""
        table = self.pairs if alias == self.left else self.pairs.T
        # Not by `@`, whose last bits depend on the number of threads.
        return np.asarray(np.einsum("ij,j->i", table, values), np.float64)


def link(predicate: Predicate, samples: Mapping[str, SampledSource]) -> Link:
    """Build the link of a predicate over two sources."""
    if isinstance(predicate, BandPredicate):
        return _band(predicate, samples)
    left, right = sorted(predicate.aliases())
    one, other = samples[left], samples[right]
    rows = np.zeros((len(one.weights), len(other.weights)), np.float32)
    step = max(BLOCK // max(len(other.weights), 1), 1)
    for begin in range(0, len(one.weights), step):
        here = np.arange(begin, min(begin + step, len(one.weights)))
        pairs = {left: np.repeat(here, len(other.weights)), right: np.tile(np.arange(len(other.weights)), len(here))}
        rows[here] = _holds(predicate, samples, pairs).reshape(len(here), len(other.weights))
    return MatrixLink(predicate.aliases(), left, rows)


def reader(samples: Mapping[str, SampledSource], at: Mapping[str, Words]) -> Callable[[Column], pa.Array]:
    """Return a function that reads sampled rows at these places of each source for an expression."""
    return lambda column: _values(samples, column).take(pa.array(at[column.alias]))


def _values(samples: Mapping[str, SampledSource], column: Column) -> pa.Array:
    # Rows of chunks that were written without the column have NULL, which alone has no type.
    values = samples[column.alias].payload[column.name]
    return pa.nulls(len(values), column.type) if pa.types.is_null(values.type) else values


def codes_of(alias: str, predicate: BandPredicate, samples: Mapping[str, SampledSource]) -> Numbers:
    """Convert one side of a band to numbers; NaN where it is NULL, which no band accepts."""
    member = predicate.left if predicate.left.aliases() == {alias} else predicate.right
    count = len(samples[alias].weights)
    codes, valid = band_codes(evaluate(member, lambda column: _values(samples, column), count))
    numbers = codes.astype(np.float64)
    return numbers if valid is None else np.where(valid, numbers, np.nan)


def _band(predicate: BandPredicate, samples: Mapping[str, SampledSource]) -> BandLink:
    (left,), (right,) = predicate.left.aliases(), predicate.right.aliases()
    low = -inf if predicate.low is None else float(predicate.low)
    high = inf if predicate.high is None else float(predicate.high)
    codes = codes_of(left, predicate, samples), codes_of(right, predicate, samples)
    wide = BandLink(frozenset({left, right}), left, *codes, low, high, 1.0)
    return BandLink(wide.sources, left, *codes, low, high, _accepted(predicate, wide, right, samples))


def _accepted(predicate: BandPredicate, wide: BandLink, right: str, samples: Mapping[str, SampledSource]) -> float:
    # A regular sample of the pairs within the bounds is evaluated.
    begin, end = wide._right_ranges
    counts = end - begin
    total = int(counts.sum())
    if not total:
        return 1.0
    chosen = np.arange(0, total, ceil(total / PROBED))
    ends = np.cumsum(counts)
    at = np.searchsorted(ends, chosen, "right")
    inside = chosen - (ends[at] - counts[at]) + begin[at]
    return float(_holds(predicate, samples, {wide.left: at, right: wide._right_order[inside]}).mean())


def _holds(predicate: Predicate, samples: Mapping[str, SampledSource], at: Mapping[str, Words]) -> Mask:
    return holds(predicate.expression, reader(samples, at), len(next(iter(at.values()))))


def _sorted(codes: Numbers) -> Words:
    # NaN, which sorts last, is left out.
    return np.argsort(codes, kind="stable")[: len(codes) - int(np.isnan(codes).sum())]


def _ranges(needles: Numbers, ascending: Numbers, low: float, high: float) -> tuple[Words, Words]:
    # Nothing is found for NaN.
    begin = np.searchsorted(ascending, needles + low, "left")
    end = np.searchsorted(ascending, needles + high, "right")
    missing = np.isnan(needles)
    begin[missing] = end[missing] = 0
    return begin, np.maximum(begin, end)
