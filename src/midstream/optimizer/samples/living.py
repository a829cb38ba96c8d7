"""The rows of one source that are alive, and the few of each chunk that are sampled.

A chunk is immutable, so what is drawn of it depends on nothing but its name, the keys and the shares. It may be
remembered by that name; without the memory the same rows are drawn again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, log2

import numpy as np
import pyarrow as pa

from midstream.language.evaluate import evaluate
from midstream.language.expression import Column, Expression
from midstream.model.manifest import ChunkRef, StateListing
from midstream.model.window import Clock
from midstream.optimizer.samples.drawn import ChunkSamples, Drawn, Mask, Words, together
from midstream.optimizer.samples.hashing import Hashes, below, hashes, salt
from midstream.state.base_state import BaseState
from midstream.state.keys import key_codes
from midstream.state.lineage import LINEAGE
from midstream.state.rows import RowRun
from midstream.state.specs import RowsSpec
from midstream.state.store.base import ChunkStore


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

    @property
    def listed(self) -> int:
        """The rows of all chunks with some that are alive."""
        return sum(ref.rows for _, ref in self._chunks)

    @property
    def chunks(self) -> frozenset[str]:
        """The names of the chunks that it reads."""
        return frozenset(ref.name for _, ref in self._chunks)

    def rows(self, share: float) -> Drawn:
        """A uniform sample of the rows alive: those whose own hash lies under a threshold."""
        drawn = (self._drawn(lane, ref, share, ()) for lane, ref in self._chunks)
        return self._alive([one.take(below(one.row_hashes, share)) for one in drawn])

    def keyed(self, shares: Sequence[float], share: float) -> Drawn:
        """A universe sample of the rows alive: those whose keys all lie under the threshold of their class.

        Of these keys' rows a share is kept, by chance.
        """
        drawn = (self._drawn(lane, ref, share, tuple(shares)) for lane, ref in self._chunks)
        return self._alive(
            [one.take(_under((one.row_hashes, *one.key_hashes), (share, *shares), len(one))) for one in drawn]
        )

    def _alive(self, pieces: Sequence[Drawn]) -> Drawn:
        found = together([piece for piece in pieces if len(piece)] or [self._nothing()])
        mask = np.ones(len(found), np.bool_)
        for clock, bound in self.bounds.items():
            if clock in found.valid_to:
                mask &= found.valid_to[clock] >= bound
        return found.take(mask)

    @cached_property
    def _chunks(self) -> Sequence[tuple[str, ChunkRef]]:
        return [
            (lane, ref)
            for lane, listing in self.listings
            for ref in listing.chunks
            if all(ref.lifetimes[c][1] >= bound for c, bound in self.bounds.items() if c in ref.lifetimes)
        ]

    def _drawn(self, lane: str, ref: ChunkRef, by_row: float, by_key: tuple[float, ...]) -> Drawn:
        """More than is asked for: shares that are powers of two, so that each chunk is opened once."""
        shares = tuple(_wider(share) for share in (by_row, *by_key))
        if by_key and all(share == 1.0 for share in shares):
            whole = self._drawn(lane, ref, 1.0, ())
            return replace(whole, row_hashes=self._of_a_key(whole.row_hashes, lane))
        at = (ref.name, self._text, len(shares))
        known = self.memory.drawn.get(at)
        if known is None or any(had < share for had, share in zip(known[0], shares, strict=True)):
            known = shares, self._read(lane, ref, shares[0], shares[1:])
            self.memory.drawn[at] = known
        return known[1]

    @cached_property
    def _text(self) -> str:
        return repr((self.alias, self.seed, self.own_rows, [(k, e.text()) for k, e in self.keys.items()], self.columns))

    def _read(self, lane: str, ref: ChunkRef, by_row: float, by_key: tuple[float, ...]) -> Drawn:
        """The rows of a chunk: what decides is hashed of all of them, the rest is read of those that are kept."""
        batch = self.store.get(ref)
        numbers = RowRun(ref.first, batch).numbers
        row_hashes = hashes(numbers, salt(self.seed, "row", self.alias, lane))
        row_hashes = self._of_a_key(row_hashes, lane) if by_key else row_hashes
        mask = below(row_hashes, by_row)
        if by_key:
            keys = [self._key(name, member, batch, numbers) for name, member in self.keys.items()]
            mask &= _under([found for _, _, found in keys], by_key, batch.num_rows)
        if self.own_rows is not None:
            mask &= (np.asarray(batch.column(LINEAGE).to_numpy(zero_copy_only=True)) & self.own_rows.mask) != 0
        at = np.flatnonzero(mask)
        few = batch if len(at) == batch.num_rows else batch.take(pa.array(at))
        if by_key:
            keys = [(codes[at], valid[at], found[at]) for codes, valid, found in keys]
        else:
            keys = [self._key(name, member, few, numbers[at]) for name, member in self.keys.items()]
        times = BaseState(self._lasting, [], 0, 0).combinations(few, 0)
        read = _reader(few)
        return Drawn(
            row_hashes[at],
            tuple(codes for codes, _, _ in keys),
            tuple(valid for _, valid, _ in keys),
            tuple(found for _, _, found in keys),
            times.valid_from,
            times.valid_to,
            {name: read(Column(pa.null(), self.alias, name)) for name in self.columns},
        )

    def _of_a_key(self, row_hashes: Hashes, lane: str) -> Hashes:
        """What decides which rows of a key are kept: independent of what decides which are in the uniform sample."""
        return hashes(row_hashes.view(np.int64), salt(self.seed, "row of a key", self.alias, lane))

    def _key(self, name: str, member: Expression, batch: pa.RecordBatch, numbers: Words) -> tuple[Words, Mask, Hashes]:
        """The codes of a key, where it is one, and its hashes; a NULL is as rare as its row."""
        codes, valid = key_codes([evaluate(member, _reader(batch), batch.num_rows)])
        salted = salt(self.seed, "key", name)
        found = hashes(codes, salted)
        if valid is None:
            return codes, np.ones(len(codes), np.bool_), found
        return codes, valid, np.where(valid, found, hashes(numbers, salt(self.seed, "null", name, self.alias)))

    @cached_property
    def _lasting(self) -> RowsSpec:
        """By what rows live: of shared ones, by the query's own filter and window."""
        lineage = self.spec.lineage
        if lineage is None or self.own_rows is None:
            return self.spec
        mask, size = self.own_rows.mask, self.own_rows.size
        own = tuple(replace(one, size=min(size, one.size)) for one in lineage.filters if one.mask == mask)
        return replace(self.spec, lineage=replace(lineage, filters=own))

    def _nothing(self) -> Drawn:
        none = np.zeros(0, np.int64)
        hashed, valid = none.view(np.uint64), none.astype(np.bool_)
        times = dict.fromkeys(self.spec.clocks, none)
        each = range(len(self.keys))
        return Drawn(
            hashed,
            tuple(none for _ in each),
            tuple(valid for _ in each),
            tuple(hashed for _ in each),
            times,
            times,
            dict.fromkeys(self.columns, pa.nulls(0)),
        )


def _under(found: Sequence[Hashes], shares: Sequence[float], rows: int) -> Mask:
    mask = np.ones(rows, np.bool_)
    for one, share in zip(found, shares, strict=True):
        mask &= below(one, share)
    return mask


def _reader(batch: pa.RecordBatch) -> Callable[[Column], pa.Array]:
    """How an expression reads the columns of a chunk; NULLs of one that no query read when it was stored."""
    names = set(batch.schema.names)
    return lambda column: batch.column(column.name) if column.name in names else pa.nulls(batch.num_rows, column.type)


def _wider(share: float) -> float:
    return 2.0 ** ceil(log2(share)) if 0 < share < 1 else 1.0
