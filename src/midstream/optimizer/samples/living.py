"""The rows of one source that are alive, and the few of its chunks that are sampled.

A chunk is immutable, so what is drawn of it depends on nothing but its name, the keys and the shares. It may be
remembered by that name; without the memory the same rows are drawn again. Small chunks that follow one another are read
together: what a chunk costs however few its rows are is then paid once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from math import ceil, log2
from operator import itemgetter
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from midstream.expr.evaluate import evaluate
from midstream.expr.expression import Column, Expression
from midstream.model.manifest import ChunkRef, StateListing
from midstream.model.window import Clock
from midstream.optimizer.samples.drawn import ChunkSamples, Drawn, United, together
from midstream.optimizer.samples.hashing import Hashes, Mask, Words, below, hashes, salt
from midstream.optimizer.samples.strata import Numbers, sums
from midstream.state.base_state import BaseState, clock_column
from midstream.state.chunk_store import ChunkStore
from midstream.state.keys import key_codes
from midstream.state.lineage import LINEAGE
from midstream.state.rows import RowRun, united
from midstream.state.specs import RowsSpec

Word = TypeVar("Word", bound=np.generic)

Columns = tuple[pa.RecordBatch, Words, Sequence[tuple[Words, Mask]]]
"""The columns that are read of rows, the numbers of the rows, and by class the codes of their keys."""

SMALL = 1 << 14  # neighbouring chunks that have no more rows than this in all are counted together, and read as a whole
OFTEN = 1 << 11  # a key that has one of so many rows of a chunk is counted there by itself

_SPREAD, _BITS = np.uint64(0x9E3779B97F4A7C15), np.uint64(48)
"""Codes times the first, shifted by the second, are numbers of buckets of which 2^16 are about equally full."""


@dataclass(frozen=True)
class Neighbours:
    """Chunks of one lane that follow one another and are counted together; one, where it is not small.

    Small ones are read as a whole, and remembered one by one: at the next review most of them are still there.
    """

    lane: str
    chunks: tuple[ChunkRef, ...]
    names: tuple[str, ...]
    is_small: bool


def neighbours(lane: str, chunks: Sequence[ChunkRef]) -> list[Neighbours]:
    """Group the chunks of a lane, small ones from the first on: those that stay are then together as before."""
    found, rows = list[list[ChunkRef]](), 0
    for ref in chunks:
        if found and rows + ref.rows <= SMALL:
            found[-1].append(ref)
            rows += ref.rows
        else:
            found.append([ref])
            rows = ref.rows
    # Of so few rows all are as good as a sample.
    return [
        Neighbours(lane, tuple(refs), tuple([ref.name for ref in refs]), sum([ref.rows for ref in refs]) <= SMALL)
        for refs in found
    ]


@dataclass(frozen=True)
class OwnRows:
    """What a query sees of rows that it shares: those that pass its filter (a bit), within its own window."""

    mask: int
    size: int


@dataclass(frozen=True)
class Living:
    """One source as its chunks hold it, in each lane.

    `keys` has its expression in each key class that it is in, by the class's text; `columns` are those that other
    predicates read; `bounds` say what is alive; `own_rows` is there where other queries share the rows.
    """

    alias: str
    spec: RowsSpec
    listings: Sequence[tuple[str, StateListing]]
    keys: Mapping[str, Expression]
    columns: tuple[str, ...]
    bounds: Mapping[Clock, int]
    own_rows: OwnRows | None
    store: ChunkStore
    seed: int
    memory: ChunkSamples
    _read_once: dict[tuple[str, ...], Columns] = field(default_factory=dict)
    _hashed: dict[tuple[str, ...], Drawn] = field(default_factory=dict)

    @property
    def listed(self) -> int:
        """The rows of all chunks with some that are alive."""
        return sum(ref.rows for _, ref in self._chunks)

    def everything(self) -> Drawn:
        """Return all rows alive, without hashes."""
        whole = [self._whole(some) for some in self._neighbours]
        return self._alive([(one, np.ones(len(one), np.bool_)) for one in whole])

    def rows(self, share: float) -> Drawn:
        """Draw a uniform sample of the rows alive: those whose own hash lies under a threshold."""
        drawn = (self._drawn(some, share, ()) for some in self._neighbours)
        return self._alive((one, below(one.row_hashes, share)) for one in drawn)

    def keyed(self, shares: Sequence[float], share: float) -> Drawn:
        """Draw a universe sample of the rows alive: those whose keys all lie under the threshold of their class.

        Of these keys' rows a share is kept, by chance.
        """
        drawn = (self._drawn(some, share, tuple(shares)) for some in self._neighbours)
        return self._alive(
            (one, np.logical_and.reduce([*map(below, (one.row_hashes, *one.key_hashes), (share, *shares))]))
            for one in drawn
        )

    def often(self, share: float) -> Mapping[str, tuple[Words, Numbers]]:
        """Count the rows alive of keys that chunks have often, by class; a sample says how many rows of a chunk are."""
        met: dict[str, list[tuple[Words, Numbers]]] = {name: [] for name in self.keys}
        for some in self._neighbours:
            drawn = self._drawn(some, share, ())
            sampled = below(drawn.row_hashes, share)
            alive = int(self._within(drawn, sampled).sum()) / max(int(sampled.sum()), 1)
            counted = map(_often, drawn.codes, drawn.valid) if some.is_small else drawn.often
            for pieces, (codes, rows) in zip(met.values(), counted, strict=True):
                pieces.append((codes, np.asarray(rows * alive, np.float64)))
        found, none = {}, (np.zeros(0, np.int64), np.zeros(0))
        for name, pieces in met.items():
            codes, counts = (np.concatenate(column) for column in zip(none, *pieces, strict=True))
            known, places = np.unique(codes, return_inverse=True)
            found[name] = known, sums(places, counts, len(known))
        return found

    def _within(self, piece: Drawn, mask: Mask) -> Mask:
        for clock, bound in self.bounds.items():
            if clock in piece.valid_to:
                mask = mask & (piece.valid_to[clock] >= bound)
        return mask

    def _alive(self, pieces: Iterable[tuple[Drawn, Mask]]) -> Drawn:
        alive = ((piece, self._within(piece, mask)) for piece, mask in pieces)
        return together([piece.take(mask) for piece, mask in alive if mask.any()] or [self._nothing()])

    @cached_property
    def _chunks(self) -> Sequence[tuple[str, ChunkRef]]:
        found = [(lane, ref) for lane, listing in self.listings for ref in listing.chunks]
        for clock, bound in self.bounds.items():
            found = [one for one in found if (lives := one[1].lifetimes.get(clock)) is None or lives[1] >= bound]
        return found

    @cached_property
    def _neighbours(self) -> Sequence[Neighbours]:
        by_lane = groupby(self._chunks, key=itemgetter(0))
        return [some for lane, pairs in by_lane for some in neighbours(lane, [ref for _, ref in pairs])]

    def _drawn(self, some: Neighbours, by_row: float, by_key: tuple[float, ...]) -> Drawn:
        # Shares that are powers of two draw more than is asked for, so that each chunk is opened once.
        shares = tuple(map(_wider, (by_row, *by_key)))
        if by_key and (some.is_small or all(share == 1.0 for share in shares)):
            whole = self._drawn(some, 1.0, ())
            return replace(whole, row_hashes=self._of_a_key(whole.row_hashes, some.lane))
        if some.is_small:
            if some.names not in self._hashed:
                self._hashed[some.names] = self._with_hashes(self._whole(some), some.lane)
            return self._hashed[some.names]
        at = (some.names, self._text, len(shares))
        known = self.memory.find(at)
        if known is None or any(had < share for had, share in zip(known[0], shares, strict=True)):
            known = shares, self._read(some, shares[0], shares[1:])
            self.memory.keep(at, known)
        return known[1]

    def _whole(self, some: Neighbours) -> Drawn:
        # Most chunks are those of the last review except for its first ones, and there they are together already.
        before = self.memory.united.get((some.lane, self._text))
        stayed, rows = (0, []) if before is None else before.begin_of(some.names)
        others = some.chunks[stayed:]
        found = {ref.name: self.memory.find(((ref.name,), self._text, 0)) for ref in others}
        new = [ref for ref in others if found[ref.name] is None]
        if new:
            batch, numbers, keys = self._own(new)
            drawn = self._of_rows(batch, numbers.view(np.uint64), keys, ())
            ends = [0, *np.searchsorted(numbers, [ref.first for ref in new[1:]]).tolist(), len(numbers)]
            for ref, begin, end in zip(new, ends, ends[1:], strict=False):
                known = (1.0,), drawn if len(new) == 1 else drawn.at(slice(begin, end))
                found[ref.name] = known
                self.memory.keep(((ref.name,), self._text, 0), known)
        rows += [known[1] for known in found.values() if known is not None]
        lengths = (() if before is None or not stayed else before.lengths[-stayed:]) + tuple(
            [len(one) for one in rows[1 if stayed else 0 :]]
        )
        united = United(some.names, lengths, together(rows))
        self.memory.united[some.lane, self._text] = united
        return united.rows

    def _with_hashes(self, whole: Drawn, lane: str) -> Drawn:
        numbers = whole.row_hashes.view(np.int64)
        keys = zip(self.keys, whole.codes, whole.valid, strict=True)
        hashed = tuple([self._hashes(name, codes, valid, numbers) for name, codes, valid in keys])
        return replace(whole, row_hashes=self._row_hashes(numbers, lane), key_hashes=hashed)

    @cached_property
    def _text(self) -> str:
        return repr((self.alias, self.seed, self.own_rows, [(k, e.text()) for k, e in self.keys.items()], self.columns))

    @cached_property
    def _read_columns(self) -> list[str]:
        # Other columns, however wide, are not read.
        times = {clock_column(clock) for clock in self.spec.clocks}
        keys = {column.name for member in self.keys.values() for column in member.columns()}
        return sorted({*times, *keys, *self.columns, *(() if self.spec.lineage is None else (LINEAGE,))})

    def _own(self, chunks: Sequence[ChunkRef]) -> Columns:
        runs = [RowRun(ref.first, self.store.get(ref)) for ref in chunks]
        if len(runs) == 1:
            batch, numbers = runs[0].batch, runs[0].numbers
        else:
            batch = united([self._narrow(run.batch) for run in runs], self._read_columns)
            numbers = np.concatenate([run.numbers for run in runs])
        if self.own_rows is not None:
            own = (np.asarray(batch.column(LINEAGE).to_numpy(zero_copy_only=True)) & self.own_rows.mask) != 0
            if not own.all():
                batch, numbers = self._narrow(batch).filter(pa.array(own)), numbers[own]
        return batch, numbers, [self._codes(member, batch) for member in self.keys.values()]

    def _read(self, some: Neighbours, by_row: float, by_key: tuple[float, ...]) -> Drawn:
        # Keys are read of all rows, the rest of those that are kept. What one hash leaves out no other is made of.
        if some.names not in self._read_once:  # Rows are drawn by themselves and then by their keys.
            self._read_once[some.names] = self._own(some.chunks)
        batch, numbers, keys = self._read_once[some.names]
        at = np.arange(len(numbers))
        often = () if by_key else tuple([_often(*one) for one in keys])
        if not by_key:
            row_hashes = self._row_hashes(numbers, some.lane)
            kept = below(row_hashes, by_row)
            at, row_hashes = at[kept], row_hashes[kept]
        hashed = list[Hashes]()
        for place, (name, (codes, valid)) in enumerate(zip(self.keys, keys, strict=True)):
            hashed.append(self._hashes(name, _of(codes, at), _of(valid, at), _of(numbers, at)))
            if by_key:
                kept = below(hashed[-1], by_key[place])
                at, hashed = at[kept], [one[kept] for one in hashed]
        if by_key:
            row_hashes = self._of_a_key(self._row_hashes(_of(numbers, at), some.lane), some.lane)
            kept = below(row_hashes, by_row)
            at, row_hashes, hashed = at[kept], row_hashes[kept], [one[kept] for one in hashed]
        few = batch if len(at) == len(numbers) else self._narrow(batch).take(pa.array(at))
        return self._of_rows(few, row_hashes, [(codes[at], valid[at]) for codes, valid in keys], hashed, often)

    def _of_rows(
        self,
        batch: pa.RecordBatch,
        row_hashes: Hashes,
        keys: Sequence[tuple[Words, Mask]],
        hashed: Sequence[Hashes],
        often: tuple[tuple[Words, Words], ...] = (),
    ) -> Drawn:
        times, read = BaseState(self._lasting, [], 0, 0).combinations(batch, 0), _reader(batch)
        payload = {name: read(Column(pa.null(), self.alias, name)) for name in self.columns}
        codes, valid = tuple([one for one, _ in keys]), tuple([one for _, one in keys])
        return Drawn(row_hashes, codes, valid, tuple(hashed), times.valid_from, times.valid_to, payload, often)

    def _narrow(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.select(self._read_columns) if set(batch.schema.names).issuperset(self._read_columns) else batch

    def _of_a_key(self, row_hashes: Hashes, lane: str) -> Hashes:
        # Which rows of a key are kept must be independent of which are in the uniform sample.
        return hashes(row_hashes.view(np.int64), salt(self.seed, "row of a key", self.alias, lane))

    def _row_hashes(self, numbers: Words, lane: str) -> Hashes:
        return hashes(numbers, salt(self.seed, "row", self.alias, lane))

    def _codes(self, member: Expression, batch: pa.RecordBatch) -> tuple[Words, Mask]:
        codes, valid = key_codes([evaluate(member, _reader(batch), batch.num_rows)])
        return codes, np.ones(len(codes), np.bool_) if valid is None else valid

    def _hashes(self, name: str, codes: Words, valid: Mask, numbers: Words) -> Hashes:
        found = hashes(codes, salt(self.seed, "key", name))
        if valid.all():
            return found
        # A NULL is as rare as its row.
        return np.where(valid, found, hashes(numbers, salt(self.seed, "null", name, self.alias)))

    @cached_property
    def _lasting(self) -> RowsSpec:
        # Shared rows live by the query's own filter and window.
        lineage = self.spec.lineage
        if lineage is None or self.own_rows is None:
            return self.spec
        mask, size = self.own_rows.mask, self.own_rows.size
        filters = (one for one in lineage.filters if one.mask == mask)
        own = tuple([one if one.size <= size else replace(one, size=size) for one in filters])
        if own == lineage.filters:
            return self.spec  # with what is remembered of it
        return replace(self.spec, lineage=replace(lineage, filters=own))

    def _nothing(self) -> Drawn:
        none, classes = np.zeros(0, np.int64), len(self.keys)
        hashed, valid, times = none.view(np.uint64), none.astype(np.bool_), dict.fromkeys(self.spec.clocks, none)
        payload = dict.fromkeys(self.columns, pa.nulls(0))
        return Drawn(hashed, (none,) * classes, (valid,) * classes, (hashed,) * classes, times, times, payload)


def _of(values: npt.NDArray[Word], at: Words) -> npt.NDArray[Word]:
    # Places ascend: as many as there are values are all of them.
    return values if len(at) == len(values) else values[at]


def _often(codes: Words, valid: Mask) -> tuple[Words, Words]:
    codes = codes if valid.all() else codes[valid]
    rows = len(codes)
    if rows > 1 << 12:  # Only codes of buckets that have enough rows are sorted.
        buckets = (codes.view(np.uint64) * _SPREAD >> _BITS).view(np.int64)
        codes = codes[(np.bincount(buckets, minlength=1 << 16) * OFTEN >= rows)[buckets]]
    known, counts = np.unique(codes, return_counts=True)
    some = counts * OFTEN >= rows
    return known[some], counts[some]


def _reader(batch: pa.RecordBatch) -> Callable[[Column], pa.Array]:
    # A column that no query read when the chunk was stored is NULL.
    names = set(batch.schema.names)
    return lambda column: batch.column(column.name) if column.name in names else pa.nulls(batch.num_rows, column.type)


def _wider(share: float) -> float:
    return 2.0 ** ceil(log2(share)) if 0 < share < 1 else 1.0
