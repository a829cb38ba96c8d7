"""Distinct keys of old rows, which the counters of JISC count (JISC §4.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from midstream.model.window import Clock
from midstream.state.combinations import Words, indices
from midstream.state.keys import stable_sort


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

    codes: Words
    ends: Mapping[Clock, Words]
    nulls: bool = False

    @staticmethod
    def of(codes: Words, until: Mapping[Clock, Words], nulls: bool = False) -> Keys:
        """The keys of rows with these codes and ends of lifetime."""
        if not len(codes):
            return Keys(codes, dict(until), nulls)
        order, ascending = stable_sort(codes)
        first = np.flatnonzero(np.concatenate([[True], ascending[1:] != ascending[:-1]]))
        ends = {clock: np.maximum.reduceat(words[order], first) for clock, words in until.items()}
        return Keys(ascending[first].astype(np.int64, copy=False), ends, nulls)

    def __len__(self) -> int:
        return len(self.codes)

    def both(self, other: Keys) -> Keys:
        """The keys that the rows of both sides of a join have: a combination lives no longer than either."""
        codes, mine, theirs = np.intersect1d(self.codes, other.codes, assume_unique=True, return_indices=True)
        ends = {clock: np.minimum(words[mine], other.ends[clock][theirs]) for clock, words in self.ends.items()}
        return Keys(codes, ends)

    def alive(self, bounds: Mapping[Clock, int]) -> Keys:
        """The keys of which a row may still be alive."""
        gone = [self.ends[clock] < bound for clock, bound in bounds.items() if clock in self.ends]
        dead = np.logical_or.reduce(gone) if gone else np.zeros(len(self), np.bool_)
        return self.take(~dead) if dead.any() else self

    def without(self, codes: Words) -> Keys:
        """The keys that are not among these ascending codes."""
        return self.take(~among(self.codes, codes))

    def take(self, which: npt.NDArray[np.bool_]) -> Keys:
        """The keys under a mask."""
        at = indices(which)
        return Keys(self.codes[at], {clock: words[at] for clock, words in self.ends.items()}, self.nulls)

    def newest(self) -> Words:
        """The codes, those whose rows live longest first."""
        return self.codes[np.lexsort([-words for words in list(self.ends.values())[::-1]])]


def among(values: Words, codes: Words) -> npt.NDArray[np.bool_]:
    """Which of the values are among ascending codes.

    >>> among(np.array([5, 1, 9]), np.array([1, 5])).tolist()
    [True, True, False]
    """
    if not len(codes):
        return np.zeros(len(values), np.bool_)
    at = np.minimum(np.searchsorted(codes, values), len(codes) - 1)
    found: npt.NDArray[np.bool_] = codes[at] == values
    return found


def united(several: Iterable[Words]) -> Words:
    """The distinct codes of all, ascending."""
    return np.unique(np.concatenate([np.zeros(0, np.int64), *several]))
