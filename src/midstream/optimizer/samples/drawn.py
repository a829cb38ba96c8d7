"""Sampled rows of one source, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from midstream.model.window import Clock
from midstream.optimizer.samples.hashing import Hashes, Mask, Words


@dataclass(frozen=True)
class Drawn:
    """Rows with their own hashes; for each key class of the source codes, where they are not NULL, and their hashes.

    As whole chunks are read the rows have their numbers in place of hashes, and their keys have none.
    `valid_from` and `valid_to` are as in `Combinations`; `payload` has what predicates other than equalities read. As
    chunks are read it also has by class the codes that are met with often in them, and how often.
    """

    row_hashes: Hashes
    codes: tuple[Words, ...]
    valid: tuple[Mask, ...]
    key_hashes: tuple[Hashes, ...]
    valid_from: Mapping[Clock, Words]
    valid_to: Mapping[Clock, Words]
    payload: Mapping[str, pa.Array]
    often: tuple[tuple[Words, Words], ...] = ()

    def __len__(self) -> int:
        return len(self.row_hashes)

    def take(self, mask: Mask) -> Drawn:
        """Select the rows under a mask."""
        if mask.all():
            return self
        return self.at(np.flatnonzero(mask))

    def at(self, at: Words | slice) -> Drawn:
        """Select the rows at these places; a slice shares the memory of all."""
        return Drawn(
            self.row_hashes[at],
            tuple([codes[at] for codes in self.codes]),
            tuple([valid[at] for valid in self.valid]),
            tuple([found[at] for found in self.key_hashes]),
            {clock: words[at] for clock, words in self.valid_from.items()},
            {clock: words[at] for clock, words in self.valid_to.items()},
            {
                name: values[at] if isinstance(at, slice) else values.take(pa.array(at))
                for name, values in self.payload.items()
            },
        )


@dataclass(frozen=True)
class United:
    """The rows of chunks that follow one another, and how many each has."""

    names: tuple[str, ...]
    lengths: tuple[int, ...]
    rows: Drawn

    def begin_of(self, names: tuple[str, ...]) -> tuple[int, list[Drawn]]:
        """Return how many of these chunks come first in `names`, all up to the last one, and their rows if any do."""
        begin = self.names.index(names[0]) if names[0] in self.names else len(self.names)
        stayed = len(self.names) - begin
        if not stayed or self.names[begin:] != names[:stayed]:
            return 0, []
        return stayed, [self.rows.at(slice(sum(self.lengths[:begin]), None)) if begin else self.rows]


REMEMBERED = 1 << 20  # so many rows at most are remembered of all chunks

DrawnOf = tuple[tuple[str, ...], str, int]
"""The names of chunks that are read together, what for, and how many shares decide: none where all is drawn."""


@dataclass
class ChunkSamples:
    """What was drawn of chunks, with its shares: the newest, and no more than `most` rows in all.

    A memory that changes no figure: whoever hosts a job may keep it from one review to the next, or drop it.
    """

    most: int = REMEMBERED
    drawn: dict[DrawnOf, tuple[tuple[float, ...], Drawn]] = field(default_factory=dict)
    united: dict[tuple[str, str], United] = field(default_factory=dict)  # by lane and what for
    _rows: int = 0

    def find(self, at: DrawnOf) -> tuple[tuple[float, ...], Drawn] | None:
        """Return what was drawn and by which shares, and mark it as the newest."""
        found = self.drawn.pop(at, None)
        if found is not None:
            self.drawn[at] = found
        return found

    def keep(self, at: DrawnOf, drawn: tuple[tuple[float, ...], Drawn]) -> None:
        """Remember what was drawn, and forget the entries unused for longest where there are too many."""
        self._forget(at)
        self.drawn[at] = drawn
        self._rows += len(drawn[1])
        while self._rows > self.most:
            self._forget(next(iter(self.drawn)))

    def forget_all_but(self, chunks: frozenset[str]) -> None:
        """Forget the chunks that are listed no longer."""
        for at in [at for at in self.drawn if not chunks.issuperset(at[0])]:
            self._forget(at)
        for lane in [lane for lane, one in self.united.items() if chunks.isdisjoint(one.names)]:
            del self.united[lane]

    def _forget(self, at: DrawnOf) -> None:
        found = self.drawn.pop(at, None)
        self._rows -= 0 if found is None else len(found[1])


def together(pieces: Sequence[Drawn]) -> Drawn:
    """Concatenate pieces, of which there is one at least."""
    if len(pieces) == 1:
        return pieces[0]
    first = pieces[0]
    kinds = {
        name: next((p.payload[name].type for p in pieces if not pa.types.is_null(p.payload[name].type)), pa.null())
        for name in first.payload
    }
    return Drawn(
        np.concatenate([p.row_hashes for p in pieces]),
        tuple(np.concatenate(codes) for codes in zip(*(p.codes for p in pieces), strict=True)),
        tuple(np.concatenate(valid) for valid in zip(*(p.valid for p in pieces), strict=True)),
        tuple(np.concatenate(found) for found in zip(*(p.key_hashes for p in pieces), strict=True)),
        {clock: np.concatenate([p.valid_from[clock] for p in pieces]) for clock in first.valid_from},
        {clock: np.concatenate([p.valid_to[clock] for p in pieces]) for clock in first.valid_to},
        {name: pa.concat_arrays([p.payload[name].cast(kinds[name]) for p in pieces]) for name in kinds},
    )
