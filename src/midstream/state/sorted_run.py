"""Runs of a join state: combinations sorted by their code, as arrays and as chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.expr.expression import Expression
from midstream.model.manifest import ChunkRef
from midstream.model.window import EVENT_TIME, Clock
from midstream.state.chunk_store import Chunk
from midstream.state.combinations import (
    Combinations,
    Heading,
    Mask,
    Selector,
    StillAlive,
    Words,
    concatenate,
    indices,
)
from midstream.state.compaction import PACE
from midstream.state.gather import all_of, block_of, column_of
from midstream.state.keys import Codes, stable_sort
from midstream.state.specs import StateSpec


@dataclass(frozen=True)
class SortedRun:
    """Some combinations of a state; `codes` ascend, and are None in an unsorted state.

    `ref` names the chunk that holds exactly these rows or a superset of which the others are dead; None if it is not
    stored.
    """

    codes: Codes | None
    combinations: Combinations
    ref: ChunkRef | None = None
    left_out: int = 0

    def __len__(self) -> int:
        return self.combinations.count

    @property
    def nbytes(self) -> int:
        """The bytes of the run's batch."""
        return self.combinations.words.nbytes + (0 if self.codes is None else self.codes.nbytes)

    def to_batch(self) -> pa.RecordBatch:
        """Encode the run as the batch that it is stored as."""
        return to_batch(self)

    def take(self, which: Selector) -> SortedRun:
        """Select the combinations at ascending indices, under a mask or in a slice; they belong to no chunk."""
        at = indices(which) if isinstance(which, np.ndarray) else which
        return SortedRun(None if self.codes is None else self.codes[at], self.combinations.take(at))

    def listed_as(self, ref: ChunkRef) -> SortedRun:
        """Describe the run by another listing of its chunk."""
        return SortedRun(self.codes, self.combinations, ref)

    def read_as(self, chunk: Chunk) -> SortedRun:
        """Return the same combinations in a chunk of other memory, as `to_batch` makes it."""
        run = _decode(chunk, self.combinations.heading, sorted=self.codes is not None)
        return SortedRun(run.codes, run.combinations, self.ref, self.left_out)

    def to_probe(self, others: int) -> SortedRun:
        """Return what so many others are best matched with: the run, or its chunk as it is stored.

        Rows of the chunk that `living` does not mark are dead and match nothing.
        """
        return self

    def living(self, places: Words) -> Mask | None:
        """Mark the living rows at some places of the chunk that `to_probe` returned; None for all."""
        return None


class DyingRun(SortedRun):
    """A run in a large chunk of which some rows are dead; it is copied only where all its rows are asked for.

    A small step does not ask for them. It counts the dead by their next ends, and takes them out of what it has found.
    """

    def __init__(self, stored: SortedRun, living: StillAlive, count: int, ref: ChunkRef | None) -> None:
        """Describe the living rows of a stored run, which are so many."""
        # Set at once, for the fields are frozen and `codes` is found when it is asked for.
        own = {"combinations": Combinations.chosen(living, count), "ref": ref, "left_out": stored.left_out}
        self.__dict__.update(own, _stored=stored, _living=living)

    _stored: SortedRun
    _living: StillAlive

    @cached_property
    def codes(self) -> Codes | None:
        """The codes of the living rows."""
        codes = self._stored.codes
        return None if codes is None else codes.take(self._living.places)

    @override
    def listed_as(self, ref: ChunkRef) -> SortedRun:
        return DyingRun(self._stored, self._living, len(self), ref)

    @override
    def to_probe(self, others: int) -> SortedRun:
        return self._stored if others <= len(self) >> 3 else self

    @override
    def living(self, places: Words) -> Mask | None:
        return self._living.among(places)


def sort_run(codes: Codes | None, combinations: Combinations, left_out: int = 0, *, in_runs: bool = False) -> SortedRun:
    """Sort combinations by their codes into a run; `in_runs`: the codes consist of ascending runs already."""
    if codes is None or len(codes) < 2 or all_of(codes[1:] >= codes[:-1]):
        return SortedRun(codes, combinations, left_out=left_out)
    order, ascending = stable_sort(codes, in_runs=in_runs)
    return SortedRun(ascending, combinations.at(order), left_out=left_out)


def merge_runs(runs: Sequence[SortedRun]) -> SortedRun:
    """Merge runs into one with the rows of all."""
    combinations = concatenate([p.combinations for p in runs])
    codes = [p.codes for p in runs if p.codes is not None]
    return sort_run(_joined(codes) if codes else None, combinations, in_runs=True)


def _joined(codes: Sequence[Codes]) -> Codes:
    joined = np.concatenate(codes)
    return joined.view(np.int64) if joined.dtype == np.int64 else joined.view(np.float64)


def purge_run(run: SortedRun, bounds: Mapping[Clock, int], dying: int = PACE.dying) -> SortedRun:
    """Select the rows of a run that are alive; looks inside only where the chunk's lifetimes straddle a bound.

    Dead rows in chunks of at least `dying` rows are only counted, where one clock says which they are.
    """
    ref = run.ref
    if ref is not None and is_alive(ref, bounds):
        return run
    return _purged(run, bounds, dying)


def _purged(run: SortedRun, bounds: Mapping[Clock, int], dying: int) -> SortedRun:
    if run.ref is not None and run.codes is not None and run.combinations.count >= dying:
        ends = run.ref.lifetimes
        passed = [(clock, bound) for clock, bound in bounds.items() if clock in ends and ends[clock][0] < bound]
        if len(passed) == 1:
            (clock, bound) = passed[0]
            dead = run.combinations.count_dead(clock, bound)
            living = StillAlive(run.combinations, clock, bound)
            return DyingRun(run, living, run.combinations.count - dead, run.ref) if dead else run
    mask = run.combinations.alive(bounds)
    if mask is None:
        return run
    at = mask.nonzero()[0]
    codes = None if run.codes is None else run.codes.take(at)
    return SortedRun(codes, run.combinations.at(at), run.ref, run.left_out)


def purge_runs(runs: Sequence[SortedRun], bounds: Mapping[Clock, int], dying: int = PACE.dying) -> list[SortedRun]:
    """Select the living rows of several runs, without a call for chunks of which none has died."""
    left = []
    for run in runs:
        lifetimes = {} if run.ref is None else run.ref.lifetimes
        straddled = not lifetimes
        for clock in bounds:
            if clock in lifetimes and lifetimes[clock][0] < bounds[clock]:
                if lifetimes[clock][1] < bounds[clock]:
                    break
                straddled = True
        else:
            left.append(_purged(run, bounds, dying) if straddled else run)
    return left


def is_alive(ref: ChunkRef, bounds: Mapping[Clock, int]) -> bool:
    """Return whether no row of a chunk is past its lifetime on any clock."""
    for clock, bound in bounds.items():
        ends = ref.lifetimes.get(clock)
        if ends is not None and ends[0] < bound:
            return False
    return True


def is_dead(ref: ChunkRef, bounds: Mapping[Clock, int]) -> bool:
    """Return whether every row of a chunk is past its lifetime on some clock."""
    for clock, bound in bounds.items():
        ends = ref.lifetimes.get(clock)
        if ends is not None and ends[1] < bound:
            return True
    return False


def before_relived(bounds: Mapping[Clock, int]) -> dict[Clock, int]:
    """Drop the bound in event time, for combinations whose lifetimes are about to be computed again.

    How long they lived so far says nothing of a step's queries: a new one may need what another kept that was just
    dropped, and that waited for a slower stream.
    """
    return {clock: bound for clock, bound in bounds.items() if clock != EVENT_TIME}


def to_batch(run: SortedRun) -> pa.RecordBatch:
    """Encode a run as an Arrow batch: `code`, then `ref:<source>`, `now:<clock>`, `until:<clock>`."""
    held = run.combinations
    columns = [column_of(row) for row in held.words]
    names = held.heading.names
    if run.codes is not None:
        columns, names = [pa.array(run.codes), *columns], ["code", *names]
    return pa.RecordBatch.from_arrays(columns, names=names)


def from_chunk(chunk: Chunk, spec: StateSpec, ref: ChunkRef | None = None) -> SortedRun:
    """Decode a run that `to_batch` wrote, on the same memory; decodes a chunk once for all steps."""
    run = _decode(chunk, spec.heading, sorted=spec.index != "scan")
    return SortedRun(run.codes, run.combinations, ref)


def _decode(chunk: Chunk, heading: Heading, *, sorted: bool) -> SortedRun:
    return chunk.once((heading, sorted), lambda: _read(chunk.batch, heading, sorted=sorted))


def _read(batch: pa.RecordBatch, heading: Heading, *, sorted: bool) -> SortedRun:
    codes = np.asarray(batch.column("code").to_numpy(zero_copy_only=True)) if sorted else None
    columns = [batch.column(name) for name in heading.names]
    words = block_of(columns)
    if words is None:
        words = np.array([column.to_numpy(zero_copy_only=True) for column in columns])
    return SortedRun(codes, Combinations.of(heading, words))


Key = tuple[Expression, ...]


class CodesTaken(NamedTuple):
    """Codes of several runs, each at some places, and of these the `kept` ones; None for all."""

    pieces: Sequence[tuple[SortedRun, Words]]
    kept: Words | None


class FoundCodes(NamedTuple):
    """The codes of what a hash join found, under the key of either side: put together when they are asked for."""

    found: Combinations
    keys: tuple[Key, Key]
    taken: Sequence[CodesTaken]

    def under(self, key: Key, combinations: Combinations) -> Codes | None:
        """Return the code of each combination under a key; None for other combinations or another key."""
        if combinations is not self.found or key not in self.keys:
            return None
        columns = []
        for pieces, kept in self.taken:
            codes = np.concatenate([run.codes.take(at) for run, at in pieces if run.codes is not None])
            columns.append(codes if kept is None else codes.take(kept))
        return columns[0] if len(columns) == 1 else np.concatenate(columns)
