"""Candidate pairs between two sorted columns of codes, block by block.

The kernel of every join: `searchsorted` finds for each needle its range in the haystack; ranges expand with `repeat`
and `arange`. Blocks bound the memory, however skewed the keys are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from midstream.state.keys import Codes

Indices = npt.NDArray[np.int64]

MOST = 2**63 - 1
"""Bounds beyond it are not searched by; the predicate decides."""

BLOCK = 1 << 18
"""Pairs of one block, unless a single needle has more: what is made of them in between stays near the processor."""


HANDFUL = 512
"""So many needles are searched for one by one: to count codes touches memory that is new in each step."""

DENSE, FEW = 4, 8
"""Codes that span less than so many times their number are found by counting; not for needles so many times fewer."""


@dataclass(frozen=True)
class Ranges:
    """For each left row a half-open range of right rows; no range ends before its start."""

    start: Indices
    end: Indices

    def count(self) -> int:
        """How many pairs there are, without making them."""
        return int((self.end - self.start).sum())

    def blocks(self) -> Iterable[tuple[Indices, Indices]]:
        """The pairs (left index, right index) in ascending order of the left index, in blocks."""
        counts = self.end - self.start
        total = counts.cumsum()
        pairs = int(total[-1]) if len(total) else 0
        if pairs > BLOCK:
            return self._cut(counts, total)
        if not pairs:
            return ()
        left = np.arange(len(counts)).repeat(counts)
        return ((left, np.arange(pairs) + (self.end - total).take(left)),)

    def _cut(self, counts: Indices, total: Indices) -> Iterator[tuple[Indices, Indices]]:
        begin = 0
        while begin < len(counts):
            done = int(total[begin - 1]) if begin else 0
            stop = max(int(np.searchsorted(total, done + BLOCK, "right")), begin + 1)
            size = int(total[stop - 1]) - done
            if size:
                here = counts[begin:stop]
                left = np.arange(stop - begin).repeat(here)
                shift = self.start[begin:stop] - (total[begin:stop] - here - done)
                yield left + begin, np.arange(size) + shift.take(left)
            begin = stop


def equal_pairs(left: Codes, right: Codes) -> Iterable[tuple[Indices, Indices]]:
    """The pairs of equal code of two ascending columns; the shorter one is searched for in the longer one."""
    if len(left) > len(right):
        return ((b, a) for a, b in equal_pairs(right, left))
    return equal_ranges(left, right).blocks()


def count_equal_pairs(left: Codes, right: Codes) -> int:
    """How many pairs of equal code there are."""
    needles, haystack = (left, right) if len(left) <= len(right) else (right, left)
    return equal_ranges(needles, haystack).count() if len(needles) else 0


def few_equal_pairs(left: Codes, right: Codes) -> Sequence[tuple[Indices, Indices]]:
    """Find the pairs of equal codes among few codes by comparing each with each; returns one block or none."""
    if left.size + right.size <= HANDFUL and set(left.tolist()).isdisjoint(right.tolist()):
        return ()  # Most often a handful meets none of another, which is found sooner so.
    left_at, right_at = (left[:, np.newaxis] == right).nonzero()
    return ((left_at, right_at),) if left_at.size else ()


def equal_ranges(needles: Codes, haystack: Codes) -> Ranges:
    """For each needle the rows of equal code in an ascending column; needles in order are found faster."""
    if haystack.dtype == np.int64 and len(needles) > HANDFUL:
        low, high = int(haystack[0]), int(haystack[-1])
        if high - low < DENSE * min(len(haystack), FEW * len(needles)):
            return _counted_ranges(needles.view(np.int64), haystack.view(np.int64), low, high)
    return Ranges(haystack.searchsorted(needles, "left"), haystack.searchsorted(needles, "right"))


def _counted_ranges(needles: Indices, haystack: Indices, low: int, high: int) -> Ranges:
    """Return the ranges from counts of the codes. If the codes are dense, this reads an offset and searches nothing."""
    offsets = np.zeros(high - low + 3, np.int64)
    np.cumsum(np.bincount(haystack - low, minlength=high - low + 1), out=offsets[1:-1])
    offsets[-1] = offsets[-2]
    # Needles outside fall on empty ranges: before the first code and behind the last.
    outside = (needles < low) | (needles > high)
    at = np.where(outside, high - low + 1, needles - low) if outside.any() else needles - low
    return Ranges(offsets[at], offsets[at + 1])


def band_pairs(left: Codes, right: Codes, low: float | None, high: float | None) -> Iterator[tuple[Indices, Indices]]:
    """Pairs with `low <= left - right <= high`, and perhaps some just outside: the predicate itself decides.

    NaN counts as the greatest number, as in SQL, so that open bands meet it.
    """
    for found in band_ranges(left, right, low, high):
        yield from found.blocks()


def count_band_pairs(left: Codes, right: Codes, low: float | None, high: float | None) -> int:
    """How many pairs `band_pairs` gives."""
    return sum(found.count() for found in band_ranges(left, right, low, high))


def band_ranges(left: Codes, right: Codes, low: float | None, high: float | None) -> Iterator[Ranges]:
    """Yield for each left code the range of right ones that `band_pairs` pairs it with; both ascend."""
    if left.dtype == np.int64 and right.dtype == np.int64:
        yield _integer_ranges(left, right, low, high)
        return
    a, b = left.astype(np.float64, copy=False), right.astype(np.float64, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        start = np.zeros(len(a), np.int64) if high is None else np.searchsorted(b, _less(a, high), "left")
        end = np.full(len(a), len(b)) if low is None else np.searchsorted(b, _more(a, low), "right")
    numbers = int(np.searchsorted(b, np.nan, "left"))
    if low is None or high is None:
        # A NaN on either side makes the difference NaN, which an open band may accept.
        start[np.isnan(a)], end[np.isnan(a)] = 0, len(b)
        if numbers < len(b):
            yield Ranges(np.maximum(end, numbers), np.full(len(a), len(b)))
    yield Ranges(start, np.maximum(start, end))


def all_pairs(left: int, right: int) -> Iterator[tuple[Indices, Indices]]:
    """Every pair of two columns of these lengths."""
    if left and right:
        yield from Ranges(np.zeros(left, np.int64), np.full(left, right)).blocks()


def _less(values: npt.NDArray[np.float64], bound: float) -> npt.NDArray[np.float64]:
    return _known(values - bound - _slack(values, bound), values, -np.inf)


def _more(values: npt.NDArray[np.float64], bound: float) -> npt.NDArray[np.float64]:
    return _known(values - bound + _slack(values, bound), values, np.inf)


def _known(ends: npt.NDArray[np.float64], values: npt.NDArray[np.float64], instead: float) -> npt.NDArray[np.float64]:
    # Near the end of the range the slack is infinite and the end unknown: then everything is searched.
    return np.where(np.isnan(ends) & ~np.isnan(values), instead, ends)


def _slack(values: npt.NDArray[np.float64], bound: float) -> npt.NDArray[np.float64]:
    # Infinite values need no slack, and would make the difference NaN.
    return np.where(np.isfinite(values), (np.abs(values) + abs(bound)) * 1e-15, 0.0)


def _integer_ranges(left: Codes, right: Codes, low: float | None, high: float | None) -> Ranges:
    start = np.zeros(len(left), np.int64)
    end = np.full(len(left), len(right))
    if high is not None and abs(high) < MOST:
        start = np.searchsorted(right, _shifted(left, math.ceil(high)), "left")
    if low is not None and abs(low) < MOST:
        end = np.searchsorted(right, _shifted(left, math.floor(low)), "right")
    return Ranges(start, np.maximum(start, end))


def _shifted(values: Codes, bound: int) -> Codes:
    if bound >= 0:
        return np.where(values < -MOST - 1 + bound, -MOST - 1, values - bound)
    return np.where(values > MOST + bound, MOST, values - bound)
