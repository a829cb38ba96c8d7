"""Combinations: rows of one or more sources that belong together, as columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from midstream.model.window import Clock

Words = npt.NDArray[np.int64]
Selector = npt.NDArray[np.int64] | npt.NDArray[np.bool_] | slice


@dataclass(frozen=True)
class Combinations:
    """Combinations of one row of each source, all arrays int64 and of one length.

    `refs`: by source label, the row's number in its base rows; payload stays there until the root fetches it.
    `valid_from`, `valid_to`: by clock, when the combination begins to hold (the greatest time among its rows) and the
    last moment at which another row may join it (the least of its rows' ends). It is within its windows iff
    `valid_from <= valid_to` on every clock.
    """

    refs: Mapping[str, Words]
    valid_from: Mapping[Clock, Words]
    valid_to: Mapping[Clock, Words]

    def __len__(self) -> int:
        return self.count

    @cached_property
    def count(self) -> int:
        """How many they are; asked so often in a small step that it is kept."""
        for words in self.refs.values():
            return len(words)
        raise ValueError("combinations have sources")

    @property
    def labels(self) -> tuple[str, ...]:
        """The sources combined."""
        return tuple(self.refs)

    def take(self, which: Selector) -> Combinations:
        """The combinations at these indices, under this mask or in this slice."""
        at = indices(which) if isinstance(which, np.ndarray) else which
        return Combinations(
            {label: words[at] for label, words in self.refs.items()},
            {clock: words[at] for clock, words in self.valid_from.items()},
            {clock: words[at] for clock, words in self.valid_to.items()},
        )

    def alive(self, bounds: Mapping[Clock, int]) -> npt.NDArray[np.bool_] | None:
        """Which combinations a row that may still come can join; None when all of them."""
        mask: npt.NDArray[np.bool_] | None = None
        for clock, bound in bounds.items():
            ends = self.valid_to.get(clock)
            if ends is None or not len(ends):
                continue
            here = ends >= bound
            mask = here if mask is None else mask & here
        return None if mask is None or bool(mask.all()) else mask

    def purge(self, bounds: Mapping[Clock, int]) -> Combinations:
        """The combinations that are alive."""
        mask = self.alive(bounds)
        return self if mask is None else self.take(mask)

    def lifetimes(self) -> dict[Clock, tuple[int, int]]:
        """For each clock the least and the greatest end."""
        if not len(self):
            return {}
        return {clock: (int(ends.min()), int(ends.max())) for clock, ends in self.valid_to.items()}


def indices(which: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> Words:
    """The indices that a mask chooses; indexing by them is several times faster than by the mask."""
    return which.nonzero()[0] if which.dtype == np.bool_ else np.asarray(which, np.int64)


def empty(labels: Iterable[str], clocks: Iterable[Clock]) -> Combinations:
    """No combinations, of these sources on these clocks."""
    nothing = np.zeros(0, np.int64)
    clocks = tuple(clocks)
    return Combinations(dict.fromkeys(labels, nothing), dict.fromkeys(clocks, nothing), dict.fromkeys(clocks, nothing))


def concatenate(pieces: Sequence[Combinations]) -> Combinations:
    """All combinations of the pieces, in order; the pieces have the same sources and clocks."""
    if len(pieces) == 1:
        return pieces[0]
    first = pieces[0]
    return Combinations(
        {label: np.concatenate([p.refs[label] for p in pieces]) for label in first.refs},
        {clock: np.concatenate([p.valid_from[clock] for p in pieces]) for clock in first.valid_from},
        {clock: np.concatenate([p.valid_to[clock] for p in pieces]) for clock in first.valid_to},
    )


def pair(left: Combinations, left_at: Words, right: Combinations, right_at: Words) -> Combinations:
    """The pairs (left[i], right[j]) for (i, j) of the index arrays that are within their windows."""
    now = {c: np.maximum(left.valid_from[c][left_at], right.valid_from[c][right_at]) for c in left.valid_from}
    until = {c: np.minimum(left.valid_to[c][left_at], right.valid_to[c][right_at]) for c in left.valid_from}
    within: npt.NDArray[np.bool_] | None = None
    for clock in now:
        here = now[clock] <= until[clock]
        within = here if within is None else within & here
    if within is not None and not within.all():
        at = indices(within)
        left_at, right_at = left_at[at], right_at[at]
        now = {c: words[at] for c, words in now.items()}
        until = {c: words[at] for c, words in until.items()}
    refs = {label: words[left_at] for label, words in left.refs.items()}
    refs.update({label: words[right_at] for label, words in right.refs.items()})
    return Combinations(refs, now, until)
