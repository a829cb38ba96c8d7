"""Distinct keys of old rows, which the counters of JISC count, and what a key is (JISC §4.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from midstream.expr.evaluate import evaluate
from midstream.expr.expression import Expression
from midstream.model.window import Clock
from midstream.runtime.lane import Lane
from midstream.state.combinations import Combinations, Words, indices
from midstream.state.keys import Codes, band_codes, key_codes, stable_sort
from midstream.state.specs import Index, RowsSpec


@dataclass(frozen=True)
class KeyColumn:
    """A column over one source by whose codes a state is completed.

    `hash`: codes of `expression` for an equality; `band`: its numbers, in order, for a range; `scan`: the numbers of
    the source's rows, where a row is found by a condition only.
    """

    index: Index
    source: str
    expression: Expression | None = None

    @staticmethod
    def of(index: Index, expression: Expression) -> KeyColumn:
        """Return the column of an expression over one source."""
        (source,) = expression.aliases()
        return KeyColumn(index, source, expression)

    @property
    def name(self) -> str:
        """The name of the column, unique in a query; of an equality the text of its expression."""
        if self.expression is None:
            return f"rows of {self.source}"
        return self.expression.text() if self.index == "hash" else f"{self.index} {self.expression.text()}"

    def codes(
        self, lane: Lane, rows: Mapping[str, RowsSpec], combinations: Combinations
    ) -> tuple[Codes, npt.NDArray[np.bool_] | None]:
        """Compute the code of each combination, and a mask of those that have one (None: all have)."""
        if self.expression is None:
            return combinations.refs[self.source], None
        values = evaluate(self.expression, lane.reader(rows, combinations), len(combinations))
        return key_codes([values]) if self.index == "hash" else band_codes(values)


@dataclass(frozen=True)
class Keys:
    """Distinct codes, ascending, and by clock until when a row of that key lives at most.

    `nulls` says that there are rows without a key, which no key finds.

    >>> keys = Keys.of(np.array([7, 3, 7]), {"event": np.array([10, 20, 30])})
    >>> keys.codes.tolist(), keys.ends["event"].tolist()
    ([3, 7], [20, 30])
    >>> keys.without(np.array([3])).codes.tolist(), keys.alive({"event": 25}).codes.tolist()
    ([7], [7])
    """

    codes: Codes
    ends: Mapping[Clock, Words]
    nulls: bool = False

    @staticmethod
    def of(codes: Codes, until: Mapping[Clock, Words], nulls: bool = False) -> Keys:
        """Collect the distinct keys of rows from their codes and ends of lifetime."""
        if not len(codes):
            return Keys(codes, dict(until), nulls)
        order, ascending = stable_sort(codes)
        first = np.flatnonzero(np.concatenate([[True], ~_equal(ascending[1:], ascending[:-1])]))
        ends = {clock: np.maximum.reduceat(words[order], first) for clock, words in until.items()}
        return Keys(ascending[first], ends, nulls)

    def __len__(self) -> int:
        return len(self.codes)

    def both(self, other: Keys) -> Keys:
        """Intersect the keys of a join's two sides; a combination lives no longer than either row."""
        codes, mine, theirs = np.intersect1d(self.codes, other.codes, assume_unique=True, return_indices=True)
        ends = {clock: np.minimum(words[mine], other.ends[clock][theirs]) for clock, words in self.ends.items()}
        return Keys(codes, ends)

    def alive(self, bounds: Mapping[Clock, int]) -> Keys:
        """Select the keys of which a row may still be alive."""
        gone = [self.ends[clock] < bound for clock, bound in bounds.items() if clock in self.ends]
        dead = np.logical_or.reduce(gone) if gone else np.zeros(len(self), np.bool_)
        return self.take(~dead) if dead.any() else self

    def without(self, codes: Codes) -> Keys:
        """Remove the keys that are among these ascending codes."""
        return self.take(~among(self.codes, codes))

    def take(self, which: npt.NDArray[np.bool_]) -> Keys:
        """Select the keys under a mask."""
        at = indices(which)
        return Keys(self.codes[at], {clock: words[at] for clock, words in self.ends.items()}, self.nulls)

    def newest(self) -> Codes:
        """List the codes, those whose rows live longest first."""
        return self.codes[np.lexsort([-words for words in list(self.ends.values())[::-1]])]


def among(values: Codes, codes: Codes) -> npt.NDArray[np.bool_]:
    """Test which values occur in ascending codes.

    >>> among(np.array([5, 1, 9]), np.array([1, 5])).tolist()
    [True, True, False]
    """
    if not len(codes):
        return np.zeros(len(values), np.bool_)
    return _equal(codes[np.minimum(np.searchsorted(codes, values), len(codes) - 1)], values)


def _equal(one: Codes, other: Codes) -> npt.NDArray[np.bool_]:
    # NaN, the greatest of a band's codes, is one code.
    same: npt.NDArray[np.bool_] = one == other
    if one.dtype == np.float64:
        same |= np.isnan(one) & np.isnan(other)
    return same


def united(several: Sequence[Codes]) -> Codes:
    """Merge codes into one ascending array of distinct ones."""
    return cast(Codes, np.unique(np.concatenate(several))) if len(several) else np.zeros(0, np.int64)
