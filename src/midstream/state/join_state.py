"""Join state: insert, probe, purge, snapshot; in a chain, slices."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain, groupby

import numpy as np
import numpy.typing as npt

from midstream.model.manifest import ChunkRef, StateListing
from midstream.model.window import Clock
from midstream.state.chunk_store import ChunkStore, store_chunk
from midstream.state.combinations import Combinations
from midstream.state.compaction import PACE, Rewriting, is_sparse, to_merge, to_unite
from midstream.state.gather import extremes
from midstream.state.lineage import Lineage
from midstream.state.sorted_run import DyingRun, SortedRun, from_chunk, is_dead, merge_runs, purge_run, purge_runs
from midstream.state.specs import StateSpec

PARTS_OF_SLICE = 4
"""A chunk covers the ages up to its slice's end divided by this, or those of one step's rows if they are more."""

MOST_IN_SLICE = 2
"""Chunks of a slice's youngest part; one more are merged."""


class JoinState:
    """The combinations of one signature during one step: `old` ones from before it, and the step's `delta`.

    Old and new stand apart until the step ends, so that operators which share a state meet it alike whatever their
    order.
    """

    def __init__(self, spec: StateSpec, old: Sequence[SortedRun], purged: int = 0, left_out: int = 0) -> None:
        self.spec = spec
        self.old: list[SortedRun] = [run for run in old if run.combinations.count]
        self.delta: SortedRun | None = None
        self.purged = purged
        self.moved = 0
        self.left_out = left_out + sum([run.left_out for run in old])

    @staticmethod
    def load(
        spec: StateSpec, listing: StateListing, bounds: Mapping[Clock, int], store: ChunkStore, dying: int = PACE.dying
    ) -> JoinState:
        """Load the state as a manifest lists it, without the rows that have died since.

        In chunks of at least `dying` rows the dead are passed over, not taken out.
        """
        known = listing.known_from(store)
        if known is None:
            refs = [ref for ref in listing.chunks if not is_dead(ref, bounds)]
            runs = [purge_run(from_chunk(store.chunk(ref), spec, ref), bounds, dying) for ref in refs]
        else:
            runs = purge_runs(known, bounds, dying)
        return JoinState(spec, runs, listing.live - sum([run.combinations.count for run in runs]), listing.left_out)

    @property
    def live(self) -> int:
        """The number of combinations that are alive, including the step's own."""
        return sum(map(len, self.old)) + (0 if self.delta is None else len(self.delta))

    def insert(self, delta: SortedRun) -> bool:
        """Take in the step's combinations; returns False if another operator already did.

        Call this once a step and operator, after the state has been probed: the probe reads `old`.
        """
        if self.delta is not None:
            return False
        self.delta = delta
        self.left_out += delta.left_out
        return True

    def complete(self, missing: SortedRun) -> None:
        """Take in combinations of rows from before this step that the state lacked; none may be there already."""
        self.left_out += missing.left_out
        if len(missing):
            self.old.append(missing)

    def never_whole(self) -> None:
        """Note that combinations without a key are missing for good: another index cannot be made of this state."""
        self.left_out = max(self.left_out, 1)

    def retain(self, kept: Callable[[Combinations], npt.NDArray[np.bool_]]) -> None:
        """Take out the old combinations that a mask leaves out; they do not count as purged."""
        self.old = [run.take(mask) for run in self.old if (mask := kept(run.combinations)).any()]

    def preceded_by(self, older: JoinState) -> JoinState:
        """List the combinations of another state before this one's; neither may have a delta yet."""
        whole = JoinState(self.spec, [*older.old, *self.old], self.purged)
        whole.left_out = older.left_out + self.left_out
        return whole

    def under(self, spec: StateSpec) -> JoinState:
        """List the old combinations under another name: the same content, not copied."""
        state = JoinState(spec, self.old)
        state.left_out = self.left_out
        return state

    def age(self) -> int:
        """Count the step's combinations as old, compacted; returns their number. Only for a plan that is replayed."""
        if self.delta is None:
            return 0
        aged, runs = len(self.delta), [run for run in (*self.old, self.delta) if len(run)]
        while found := to_merge([len(run) for run in runs]):
            runs[found[0] : found[1]] = [merge_runs(runs[found[0] : found[1]])]
        self.old, self.delta = runs, None
        return aged

    def finish(
        self, store: ChunkStore, name: str, now: int | None = None, rewriting: Rewriting | None = None
    ) -> StateListing:
        """Store what is new, compact, and list the chunks. `name` begins the new chunks' names.

        In a chain that is cut, chunks are listed slice by slice: `now` is the time that ages are reckoned from.
        Compaction that is not granted by `rewriting`, of which a lane has one for all its states, is left for later.
        """
        rewriting = rewriting or PACE.rewriting_in(0)
        runs = [
            SortedRun(run.codes, run.combinations)
            if run.ref is not None
            and is_sparse(run.combinations.count, run.ref.rows)
            and rewriting.grants(run.combinations.count)
            else run
            for run in self.old
        ]
        is_new = self.delta is not None and self.delta.combinations.count > 0
        if self.delta is not None and is_new:
            runs.append(self.delta)
        lineage = self.spec.lineage
        if lineage is not None and lineage.cuts and now is not None:
            return self._listing(self._in_slices(store, name, runs, lineage, now, rewriting), store)
        if not is_new and not self.purged and all([run.ref is not None for run in runs]):
            return self._listing(runs, store)  # Nothing was done to it; it may be listed by the slices of a chain.
        _merge(runs, partial(to_merge, limit=rewriting.most), rewriting)
        clock = None if lineage is None else lineage.clock
        return self._listing([_listed(store, f"{name}-{at}", run, clock) for at, run in enumerate(runs)], store)

    def _in_slices(
        self, store: ChunkStore, name: str, runs: list[SortedRun], lineage: Lineage, now: int, rewriting: Rewriting
    ) -> list[SortedRun]:
        # A chunk is in the slice of its youngest row, so it moves on only if it is no longer than a part of the slice.
        born = [born_in(run, lineage.clock) for run in runs]
        order = sorted(range(len(runs)), key=lambda i: born[i][1])
        kept: list[SortedRun] = []
        for at, inside in groupby(order, lambda i: slice_of(born[i], lineage.cuts, now)):
            parts = _parts([(runs[i], born[i][1]) for i in inside], max(lineage.cuts[at] // PARTS_OF_SLICE, 1))
            for part in parts[:-1]:
                _merge(part, partial(to_unite, limit=rewriting.most), rewriting)  # No more chunks will enter it.
            _merge(parts[-1], partial(to_merge, most=MOST_IN_SLICE, limit=rewriting.most), rewriting)
            for run in chain.from_iterable(parts):
                if run.ref is not None and run.ref.slice != at:
                    self.moved += len(run)
                kept.append(_listed(store, f"{name}-{len(kept)}", run, lineage.clock, at))
        return kept

    def _listing(self, runs: Sequence[SortedRun], store: ChunkStore) -> StateListing:
        lineage = self.spec.lineage.digest if self.spec.lineage else ""
        chunks, live, dying = list[ChunkRef](), 0, False
        for run in runs:
            assert run.ref is not None
            chunks.append(run.ref)
            live += run.combinations.count
            dying = dying or type(run) is DyingRun
        listing = StateListing(tuple(chunks), live, 0, self.left_out, lineage)
        # What a chunk with dead rows was made of is not what is alive of it now.
        return listing if dying else listing.made_of(runs, store)


def _merge(
    runs: list[SortedRun], choose: Callable[[Sequence[int]], tuple[int, int] | None], rewriting: Rewriting
) -> None:
    while found := choose([run.combinations.count for run in runs]):
        begin, end = found
        if not rewriting.grants(sum([run.combinations.count for run in runs[begin:end]])):
            break
        runs[begin:end] = [merge_runs(runs[begin:end])]


def _parts(runs: Sequence[tuple[SortedRun, int]], length: int) -> list[list[SortedRun]]:
    return [[run for run, _ in part] for _, part in groupby(runs, lambda one: one[1] // length)]


def born_in(run: SortedRun, clock: Clock) -> tuple[int, int]:
    """Return the least and the greatest time of a run's rows, of which it has some."""
    if run.ref is not None and run.ref.born is not None:
        return run.ref.born
    return extremes(run.combinations.begins_on(clock))


def slice_of(born: tuple[int, int], cuts: Sequence[int], now: int) -> int:
    """Find the slice of rows born in a range, by the age of the youngest; cuts are inclusive.

    Wang's slices are half-open the other way round, `W_(i-1) <= age < W_i`; windows are inclusive here.

    >>> slice_of((0, 5), cuts=(10, 20), now=15), slice_of((0, 5), cuts=(10, 20), now=16)
    (0, 1)
    """
    return min(bisect_left(cuts, max(now - born[1], 0)), len(cuts) - 1)


def _listed(store: ChunkStore, name: str, run: SortedRun, clock: Clock | None, at: int | None = None) -> SortedRun:
    ref, alive = run.ref, run.combinations.count
    if ref is None:
        lifetimes = run.combinations.lifetimes()
        if clock is None:
            ref = store_chunk(store, name, run, lifetimes=lifetimes)
        else:
            born = born_in(run, clock)
            ref = store_chunk(store, name, run, lifetimes=lifetimes, born=born, slice=at or 0, alive=alive)
    elif clock is None:
        return run
    else:
        slice = ref.slice if at is None else at
        if ref.born is not None and ref.slice == slice and ref.alive == alive:
            return run
        ref = ref.listed_as(slice, born_in(run, clock), alive)
    return run.listed_as(ref)
