"""A predicate between the samples of two sources that is not an equality: which rows find each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from midstream.expr.evaluate import evaluate, holds
from midstream.expr.expression import Column
from midstream.logical.query import BandPredicate, Predicate
from midstream.operators.candidates import Ranges, band_ranges
from midstream.optimizer.samples.hashing import Mask, Words
from midstream.optimizer.samples.strata import Numbers, SampledSource
from midstream.state.keys import band_codes, stable_sort

Table = npt.NDArray[np.float32]

BLOCK = 1 << 20  # pairs that a predicate is evaluated on at once
PROBED = 1 << 12  # pairs of a band that are looked at to learn how many its predicate accepts


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

    By source: `rows` is how many there are, `orders` has those that are not NULL, in order of their numbers, `ranges`
    the ranges of the other's that each of them meets. These may be wider than the predicate, so a few pairs are looked
    at and the rest taken to be like them.
    """

    sources: frozenset[str]
    rows: Mapping[str, int]
    orders: Mapping[str, Words]
    ranges: Mapping[str, Sequence[Ranges]]
    accepted: float = 1.0

    def found_by(self, alias: str, values: Numbers) -> Numbers:
        """Sum for each row of this source the values of the other's rows within the band."""
        (other,) = self.sources - {alias}
        sums = np.concatenate([np.zeros(1), np.cumsum(values[self.orders[other]])])
        found = np.zeros(self.rows[alias])
        for one in self.ranges[alias]:
            found[self.orders[alias]] += sums[one.end] - sums[one.start]
        return found * self.accepted


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


def _band(predicate: BandPredicate, samples: Mapping[str, SampledSource]) -> BandLink:
    rows, orders, codes = {}, {}, {}
    for member in (predicate.left, predicate.right):
        (alias,) = member.aliases()
        rows[alias] = len(samples[alias].weights)
        found, valid = band_codes(evaluate(member, partial(_values, samples), rows[alias]))
        some = np.arange(rows[alias]) if valid is None else np.flatnonzero(valid)
        order, codes[alias] = stable_sort(found[some])
        orders[alias] = some[order]
    left, right = codes
    low, high = (None if bound is None else float(bound) for bound in (predicate.low, predicate.high))
    less, more = (None if bound is None else -bound for bound in (high, low))
    ranges = {
        left: [*band_ranges(codes[left], codes[right], low, high)],
        right: [*band_ranges(codes[right], codes[left], less, more)],
    }
    wide = BandLink(frozenset(codes), rows, orders, ranges)
    return replace(wide, accepted=_accepted(predicate, wide, left, right, samples))


def _accepted(
    predicate: BandPredicate, wide: BandLink, left: str, right: str, samples: Mapping[str, SampledSource]
) -> float:
    # A regular sample of the pairs within the ranges is evaluated.
    begin = np.concatenate([one.start for one in wide.ranges[left]])
    counts = np.concatenate([one.end for one in wide.ranges[left]]) - begin
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    if not total:
        return 1.0
    chosen = np.arange(0, total, ceil(total / PROBED))
    at = np.searchsorted(ends, chosen, "right")
    inside = chosen - (ends[at] - counts[at]) + begin[at]
    pairs = {left: wide.orders[left][at % len(wide.orders[left])], right: wide.orders[right][inside]}
    return float(_holds(predicate, samples, pairs).mean())


def _holds(predicate: Predicate, samples: Mapping[str, SampledSource], at: Mapping[str, Words]) -> Mask:
    return holds(predicate.expression, reader(samples, at), len(next(iter(at.values()))))
