"""Combinations: rows of one or more sources that belong together, as columns of one block of words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from midstream.model.window import Clock
from midstream.state.gather import all_of, extremes

Words = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Selector = npt.NDArray[np.int64] | npt.NDArray[np.bool_] | slice


MANY = 1 << 18
"""So many combinations joined of pieces are not copied into one block at once: memory of that size is given back to the
system as soon as it is free, and what replaces it has to be zeroed first.
"""


class Deaths(NamedTuple):
    """When the next of many lifetimes end, so that those that have ended are counted without a look at all of them.

    `before` of them end before `since`; `soon` are the ends from there on and before `until`, ascending.

    >>> ends = np.array([5, 1, 9, 5, 7])
    >>> deaths = Deaths.of(ends, 2)
    >>> deaths.before, deaths.soon.tolist(), [deaths.before_bound(bound) for bound in (1, 2, 5, 6)]
    (1, [5, 5], [None, 1, 1, 3])
    """

    since: int
    until: int
    before: int
    soon: Words

    @staticmethod
    def of(ends: Words, bound: int) -> Deaths:
        """Look at all ends once, for the bounds from this one on that about a 32nd of those alive outlives."""
        some = ends[:: max(len(ends) >> 10, 1)]
        some = np.sort(some[some >= bound])
        until = (int(some[len(some) >> 5]) if len(some) else max(bound, int(ends.max()))) + 1
        near = ends[indices(ends < until)]
        ahead = near >= bound
        return Deaths(bound, until, len(near) - int(np.count_nonzero(ahead)), np.sort(near[indices(ahead)]))

    def before_bound(self, bound: int) -> int | None:
        """Count the lifetimes that end before a bound; None for one that was not looked at."""
        if not self.since <= bound <= self.until:
            return None
        return self.before + int(self.soon.searchsorted(bound))


class StillAlive:
    """Which of many combinations end at or after a bound on a clock; found when it is asked for."""

    def __init__(self, stored: Combinations, clock: Clock, bound: int) -> None:
        self.stored, self._clock, self._bound = stored, clock, bound

    @cached_property
    def places(self) -> Words:
        """The places of all that are alive."""
        return indices(self.stored.ends_on(self._clock) >= self._bound)

    def among(self, places: Words) -> Mask | None:
        """Mark the living ones at some places; None for all."""
        alive: Mask = self.stored.ends_on(self._clock).take(places) >= self._bound
        return None if not alive.size or all_of(alive) else alive


class Heading:
    """What the rows of a block are: a word for each source, for each clock when it begins to hold, and when it ends.

    It keeps the headings that were derived from it, since each step derives them again.
    """

    def __init__(self, labels: tuple[str, ...], begins: tuple[Clock, ...], ends: tuple[Clock, ...]) -> None:
        # A clock is equal to its text, but more than that.
        self.labels, self.begins, self.ends = labels, tuple(map(Clock.parse, begins)), tuple(map(Clock.parse, ends))
        self.now, self.until = len(labels), len(labels) + len(begins)
        self.width = self.until + len(ends)
        self._of = (self.labels, self.begins, self.ends)
        self._hash = hash(self._of)
        self._pairs: dict[Heading, Heading] = {}
        self._on: dict[tuple[Clock, ...], Heading] = {}

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Heading) and self._of == other._of)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return Heading, self._of

    @cached_property
    def places(self) -> dict[str, int]:
        """The row of each source."""
        return {label: row for row, label in enumerate(self.labels)}

    @cached_property
    def names(self) -> list[str]:
        """The names of the rows as columns of a file."""
        begins, ends = (f"now:{clock}" for clock in self.begins), (f"until:{clock}" for clock in self.ends)
        return [*(f"ref:{label}" for label in self.labels), *begins, *ends]

    @cached_property
    def nothing(self) -> Combinations:
        """An empty block under this heading."""
        return Combinations.of(self, np.zeros((self.width, 0), np.int64))

    def with_right(self, right: Heading) -> Heading:
        """Return the heading of pairs with these left of others, on the clocks of the left ones."""
        if right not in self._pairs:
            self._pairs[right] = Heading((*self.labels, *right.labels), self.begins, self.begins)
        return self._pairs[right]

    def on(self, clocks: tuple[Clock, ...]) -> Heading:
        """Return the heading of the same sources on other clocks."""
        if self.begins == self.ends == clocks:
            return self
        if clocks not in self._on:
            self._on[clocks] = Heading(self.labels, clocks, clocks)
        return self._on[clocks]


class Combinations:
    """Combinations of one row of each source, frozen, all arrays int64 and of one length.

    `refs`: by source label, the row's number in its base rows; payload stays there until the root fetches it.
    `valid_from`, `valid_to`: by clock, when the combination begins to hold (the greatest time among its rows) and the
    last moment at which another row may join it (the least of its rows' ends). It is within its windows iff
    `valid_from <= valid_to` on every clock.

    All of them are the rows of one block, `words`, so that what is done to combinations is done to a few arrays and
    not to as many as they have sources. Those made of single columns are put into a block when one is asked for; so are
    many that were joined of pieces, of which each column is put together by itself as long as no block is asked for.
    """

    __slots__ = (
        "count",
        "deaths",
        "heading",
        "is_block",
        "living",
        "pieces",
        "refs",
        "valid_from",
        "valid_to",
        "words",
    )

    count: int
    is_block: bool
    pieces: Sequence[Combinations]
    refs: Mapping[str, Words]
    valid_from: Mapping[Clock, Words]
    valid_to: Mapping[Clock, Words]

    heading: Heading
    """What the rows of `words` are."""

    living: StillAlive
    """Of many combinations some, which are copied when one of their columns is asked for."""

    deaths: tuple[Clock, Deaths]
    """When the next of them die, on the clock that this was last asked for."""

    words: Words
    """The block of all columns, one a row."""

    def __init__(
        self, refs: Mapping[str, Words], valid_from: Mapping[Clock, Words], valid_to: Mapping[Clock, Words]
    ) -> None:
        self.refs, self.valid_from, self.valid_to = refs, valid_from, valid_to
        self.count, self.is_block = len(next(iter(refs.values()))) if refs else 0, False
        self.pieces = ()

    @staticmethod
    def of(heading: Heading, words: Words) -> Combinations:
        """Wrap a block of words under this heading."""
        made = _new(Combinations)
        made.heading, made.words, made.count, made.is_block = heading, words, words.shape[1], True
        return made

    @staticmethod
    def joined(heading: Heading, pieces: Sequence[Combinations], count: int) -> Combinations:
        """Join several blocks under this heading, in order."""
        made = _new(Combinations)
        made.heading, made.pieces, made.count, made.is_block = heading, pieces, count, False
        return made

    @staticmethod
    def chosen(living: StillAlive, count: int) -> Combinations:
        """Choose the living ones of some combinations, which are so many."""
        made = _new(Combinations)
        made.heading, made.living, made.count, made.is_block = living.stored.heading, living, count, False
        made.pieces = ()
        return made

    def __getattr__(self, name: str) -> Any:
        # Called for what is not there yet: of columns the block, or of a block its columns.
        if name in _COLUMNS and not self.is_block and self.pieces:
            self._of_pieces(name)
        elif name in _COLUMNS and not self.is_block and hasattr(self, "living"):
            self.words, self.is_block = self.living.stored.at(self.living.places).words, True
            return getattr(self, name)
        elif name in ("heading", "words"):
            self.heading = Heading(tuple(self.refs), tuple(self.valid_from), tuple(self.valid_to))
            columns = [*self.refs.values(), *self.valid_from.values(), *self.valid_to.values()]
            self.words = np.array(columns, np.int64).reshape(len(columns), self.count)
            self.is_block = True
        elif name in ("refs", "valid_from", "valid_to"):
            heading, words = self.heading, self.words
            self.refs = dict(zip(heading.labels, words, strict=False))
            self.valid_from = dict(zip(heading.begins, words[heading.now :], strict=False))
            self.valid_to = dict(zip(heading.ends, words[heading.until :], strict=True))
        else:
            raise AttributeError(name)
        return object.__getattribute__(self, name)

    def _of_pieces(self, name: str) -> None:
        heading = self.heading
        if name == "words":
            self.words = np.concatenate([piece.words for piece in self.pieces], 1)
            self.is_block, self.pieces = True, ()
        else:
            self.refs = _Joined(self.pieces, heading.labels, 0)
            self.valid_from = _Joined(self.pieces, heading.begins, heading.now)
            self.valid_to = _Joined(self.pieces, heading.ends, heading.until)

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return f"Combinations({dict(self.refs)}, {dict(self.valid_from)}, {dict(self.valid_to)})"

    @property
    def labels(self) -> tuple[str, ...]:
        """The sources combined."""
        return self.heading.labels

    def numbers_of(self, label: str) -> Words:
        """Return the number of each combination's row of a source; of a block without making all its columns."""
        if not self.is_block:
            return self.refs[label]
        numbers: Words = self.words[self.heading.places[label]]
        return numbers

    def begins_on(self, clock: Clock) -> Words:
        """Return when each begins to hold on a clock; of a block without making all its columns."""
        if not self.is_block:
            return self.valid_from[clock]
        begins: Words = self.words[self.heading.now + self.heading.begins.index(clock)]
        return begins

    def under(self, heading: Heading) -> Combinations:
        """Reorder the columns as in a heading of these sources and at most these clocks."""
        if self.heading is heading or self.heading == heading:
            return self
        refs = {label: self.refs[label] for label in heading.labels}
        begins = {clock: self.valid_from[clock] for clock in heading.begins}
        return Combinations(refs, begins, {clock: self.valid_to[clock] for clock in heading.ends})

    def take(self, which: Selector) -> Combinations:
        """Select the combinations at these indices, under this mask or in this slice."""
        if not isinstance(which, slice):
            return self.at(indices(which))
        if self.is_block or self.pieces or hasattr(self, "living"):
            return Combinations.of(self.heading, self.words[:, which])
        # A block of all columns would be as large as everything that the slices are cut from.
        return Combinations(
            {label: words[which] for label, words in self.refs.items()},
            {clock: words[which] for clock, words in self.valid_from.items()},
            {clock: words[which] for clock, words in self.valid_to.items()},
        )

    def at(self, places: Words) -> Combinations:
        """Select the combinations at these indices."""
        if self.is_block:
            return Combinations.of(self.heading, self.words.take(places, 1))
        if self.pieces:
            words = np.empty((self.heading.width, len(places)), np.int64)
            columns = chain(self.refs.values(), self.valid_from.values(), self.valid_to.values())
            for column, row in zip(columns, words, strict=True):
                column.take(places, 0, row, "clip")
            return Combinations.of(self.heading, words)
        return Combinations(
            {label: words.take(places) for label, words in self.refs.items()},
            {clock: words.take(places) for clock, words in self.valid_from.items()},
            {clock: words.take(places) for clock, words in self.valid_to.items()},
        )

    def ends_on(self, clock: Clock) -> Words:
        """Return when each ends on a clock; of a block without making all its columns."""
        if not self.is_block:
            return self.valid_to[clock]
        ends: Words = self.words[self.heading.until + self.heading.ends.index(clock)]
        return ends

    def count_dead(self, clock: Clock, bound: int) -> int:
        """Count those that end before a bound; what is learned of their ends is kept for greater bounds."""
        known = getattr(self, "deaths", None)
        found = known[1].before_bound(bound) if known is not None and known[0] == clock else None
        if found is None:
            self.deaths = clock, Deaths.of(self.ends_on(clock), bound)
            found = self.deaths[1].before
        return found

    def alive(self, bounds: Mapping[Clock, int]) -> npt.NDArray[np.bool_] | None:
        """Test which combinations a later row can still join; None when all of them."""
        mask: npt.NDArray[np.bool_] | None = None
        if not self.count:
            return mask
        for row, clock in enumerate(self.heading.ends, self.heading.until):
            if clock in bounds:
                here = self.words[row] >= bounds[clock]
                mask = here if mask is None else mask & here
        return None if mask is None or all_of(mask) else mask

    def purge(self, bounds: Mapping[Clock, int]) -> Combinations:
        """Select the combinations that are alive."""
        mask = self.alive(bounds)
        return self if mask is None else self.take(mask)

    def lifetimes(self) -> dict[Clock, tuple[int, int]]:
        """Return for each clock the least and the greatest end."""
        if not self.count:
            return {}
        words, until = self.words, self.heading.until
        return {clock: extremes(words[row]) for row, clock in enumerate(self.heading.ends, until)}


class _Joined(Mapping[Any, Words]):
    """Columns of pieces: each is put together when it is read."""

    def __init__(self, pieces: Sequence[Combinations], names: Sequence[str], first: int) -> None:
        self._pieces, self._rows = pieces, {name: row for row, name in enumerate(names, first)}
        self._whole: dict[str, Words] = {}

    def __getitem__(self, name: str) -> Words:
        if name not in self._whole:
            row = self._rows[name]
            self._whole[name] = np.concatenate([piece.words[row] for piece in self._pieces])
        return self._whole[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


_COLUMNS = ("refs", "valid_from", "valid_to", "words")

_new = object.__new__

# What numpy's method calls in the end; the way there takes longer than a handful of words.
_all = np.logical_and.reduce


def indices(which: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> Words:
    """Convert a mask to the indices it chooses; indexing by them is several times faster than by the mask."""
    return which.nonzero()[0] if which.dtype == np.bool_ else np.asarray(which, np.int64)


def empty(labels: Iterable[str], clocks: Iterable[Clock]) -> Combinations:
    """Return no combinations, of these sources on these clocks."""
    on = tuple(clocks)
    return Heading(tuple(labels), on, on).nothing


def concatenate(pieces: Sequence[Combinations]) -> Combinations:
    """Concatenate pieces of the same sources and clocks, in order."""
    if len(pieces) == 1:
        return pieces[0]
    heading = pieces[0].heading
    count = 0
    for piece in pieces:
        count += piece.count
    if count >= MANY:
        return Combinations.joined(heading, [piece.under(heading) for piece in pieces], count)
    return Combinations.of(heading, np.concatenate([piece.under(heading).words for piece in pieces], 1))


class Candidates(NamedTuple):
    """Pairs of rows of two blocks that may belong together: (left[i], right[j]) for (i, j) of the index arrays."""

    left: Combinations
    left_at: Words
    right: Combinations
    right_at: Words


def pair(left: Combinations, left_at: Words, right: Combinations, right_at: Words) -> Combinations:
    """Join the pairs (left[i], right[j]) for (i, j) of the index arrays that are within their windows."""
    one = left.heading.on(left.heading.begins)
    other = right.heading.on(one.begins)
    here, there = left.under(one).words, right.under(other).words
    now = np.maximum(here[one.now : one.until].take(left_at, 1), there[other.now : other.until].take(right_at, 1))
    until = np.minimum(here[one.until :].take(left_at, 1), there[other.until :].take(right_at, 1))
    within = (now <= until)[0] if len(now) == 1 else _all(now <= until, 0)
    if np.count_nonzero(within) < len(within):
        at = indices(within)
        left_at, right_at = left_at[at], right_at[at]
        now, until = now.take(at, 1), until.take(at, 1)
    heading = one.with_right(other)
    words = np.empty((heading.width, len(left_at)), np.int64)
    # The indices are within bounds; said so, `take` needs no copy in between.
    here[: one.now].take(left_at, 1, words[: one.now], "clip")
    there[: other.now].take(right_at, 1, words[one.now : heading.now], "clip")
    words[heading.now : heading.until] = now
    words[heading.until :] = until
    return Combinations.of(heading, words)


def pair_few(pieces: Sequence[Candidates]) -> tuple[Combinations, Words | None]:
    """Join the candidates of several blocks, in order; returns also the indices within their windows, None for all.

    Takes whole rows before it looks at windows: of few candidates in each block that is fewer calls, of many more work.
    """
    one = pieces[0].left.heading
    one = one.on(one.begins)
    other = pieces[0].right.heading.on(one.begins)
    lefts = [left.under(one).words.take(at, 1) for left, at, _, _ in pieces]
    rights = [right.under(other).words.take(at, 1) for _, _, right, at in pieces]
    here, there = (lefts[0], rights[0]) if len(pieces) == 1 else (np.concatenate(lefts, 1), np.concatenate(rights, 1))
    heading = one.with_right(other)
    words = np.empty((heading.width, here.shape[1]), np.int64)
    words[: one.now], words[one.now : heading.now] = here[: one.now], there[: other.now]
    now, until = words[heading.now : heading.until], words[heading.until :]
    np.maximum(here[one.now : one.until], there[other.now : other.until], out=now)
    np.minimum(here[one.until :], there[other.until :], out=until)
    within = (now <= until)[0] if len(now) == 1 else _all(now <= until, 0)
    if np.count_nonzero(within) == len(within):
        return Combinations.of(heading, words), None
    kept = indices(within)
    return Combinations.of(heading, words.take(kept, 1)), kept
