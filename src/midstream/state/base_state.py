"""The base state of a source: load, append, purge and list its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from midstream.expr.evaluate import all_hold
from midstream.model.manifest import MOST_KNOWN, StateListing
from midstream.model.window import EVENT_TIME, FOREVER, Clock
from midstream.state.chunk_store import ChunkStore, store_chunk
from midstream.state.combinations import Combinations, Deaths, Words
from midstream.state.compaction import PACE, Rewriting, is_sparse, rows_to_merge
from midstream.state.gather import POOL
from midstream.state.lineage import LINEAGE, Lineage, later
from midstream.state.memory_store import plain_size, width_of
from midstream.state.rows import BaseRows, Lifetimes, RowRun, numbered, united
from midstream.state.sorted_run import before_relived, is_alive, is_dead
from midstream.state.specs import RowsSpec

Mask = npt.NDArray[np.bool_]

TIME = "_ts"
"""The internal column of event time, int64 microseconds."""


def count_column(stream: str) -> str:
    """Name the internal column that counts the arrivals of a stream up to and including a row.

    >>> count_column("A")
    '_count:A'
    """
    return f"_count:{stream}"


def clock_column(clock: Clock) -> str:
    """Name the internal column of a row's position on a clock.

    >>> clock_column(EVENT_TIME), clock_column(Clock("A"))
    ('_ts', '_count:A')
    """
    return TIME if clock.stream is None else count_column(clock.stream)


class BaseState:
    """The rows of one source during one step: those that are alive, and the step's own once `append`ed.

    `relived` says that with this step lifetimes are reckoned by another lineage than before.
    """

    def __init__(
        self, spec: RowsSpec, old: Sequence[RowRun], next_row: int, live: int, dying: int = PACE.dying
    ) -> None:
        self.spec, self.live_before = spec, live
        self.old, self.next_row = list(old), next_row
        self.rows: BaseRows | None = None
        self.relived = False
        self._dying = dying
        self._masks: dict[int, tuple[RowRun, Mask | None]] = {}

    @staticmethod
    def load(
        spec: RowsSpec,
        listing: StateListing,
        bounds: Mapping[Clock, int],
        store: ChunkStore,
        step: int = -1,
        dying: int = PACE.dying,
    ) -> BaseState:
        """Load the state as a manifest lists it, without the chunks at its front that are dead as a whole.

        Only the front is cut, so that row numbers stay consecutive and a row is found by subtraction. Where the lineage
        has changed since, rows get their bits for the filters that are new in this `step`.

        In chunks of at least `dying` rows the dead are only counted.
        """
        changed = spec.lineage is not None and listing.lineage != spec.lineage.digest
        over, known = before_relived(bounds) if changed else bounds, listing.known_from(store)
        dead = 0
        while dead < len(listing.chunks) and is_dead(listing.chunks[dead], over):
            dead += 1
        if known is None:
            runs = [RowRun(ref.first, store.get(ref), ref) for ref in listing.chunks[dead:]]
        else:
            runs = list(known[dead:])
        state = BaseState(spec, runs, listing.next_row, listing.live, dying)
        if spec.lineage is not None and changed:
            state.old, state.relived = [state._relived(run, spec.lineage, step) for run in runs], True
        return state

    def _relived(self, run: RowRun, lineage: Lineage, step: int) -> RowRun:
        batch, ref = run.batch, run.ref
        if any(f.since == step for f in lineage.filters):
            batch, ref = relabelled(batch, lineage, step), None
        lifetimes = self.combinations(batch, run.first).lifetimes()
        return RowRun(run.first, batch, ref and replace(ref, lifetimes=lifetimes))

    def append(self, batch: pa.RecordBatch) -> Combinations:
        """Number the step's rows; returns them as combinations of one."""
        lineage, numbers = self.spec.lineage, np.arange(self.next_row, self.next_row + batch.num_rows)
        bits = None if lineage is None or lineage.passed_by_all else _words(batch, LINEAGE)
        arrived = self._combined(batch, numbers, bits)
        self.rows = BaseRows(self.old, RowRun(self.next_row, batch, None, arrived.lifetimes(), arrived))
        return arrived

    def append_nothing(self, batch: pa.RecordBatch) -> Combinations:
        """Append a step without rows, of which only the columns are given."""
        self.rows = BaseRows(self.old, RowRun(self.next_row, batch))
        return self.spec.heading.nothing

    def nothing(self) -> RowRun:
        """Return a run of no rows, of the shape of the old ones, at the next number."""
        if not self.old:
            return RowRun(self.next_row, pa.RecordBatch.from_pydict({}))
        return RowRun(self.next_row, self.old[-1].batch.slice(0, 0))

    def combinations(self, batch: pa.RecordBatch, first: int) -> Combinations:
        """Convert rows of a run to combinations of one, with their lifetimes."""
        bits = None if self.spec.lineage is None else _words(batch, LINEAGE)
        return self._combined(batch, RowRun(first, batch).numbers, bits)

    def _combined(self, batch: pa.RecordBatch, numbers: Words, bits: Words | None) -> Combinations:
        # Where there is a lineage, `bits` says which filters the rows pass; without `bits` they pass all.
        spec = self.spec
        now = {clock: _words(batch, clock_column(clock)) for clock in spec.clocks}
        if spec.lineage is not None:
            until = spec.lineage.ends(now, bits)
        else:
            until = {clock: self._until(clock, now[clock]) for clock in spec.clocks}
        heading = spec.heading
        words = np.empty((heading.width, len(numbers)), np.int64)
        words[0] = numbers
        for at, clock in enumerate(spec.clocks):
            words[heading.now + at], words[heading.until + at] = now[clock], until[clock]
        return Combinations.of(heading, words)

    def alive(self, bounds: Mapping[Clock, int]) -> list[Combinations]:
        """Return the old rows that are alive, run by run."""
        pieces = [self.combinations(s.batch, s.first).purge(bounds) for s in self.old]
        return [piece for piece in pieces if len(piece)]

    def count_alive(self, bounds: Mapping[Clock, int]) -> int:
        """Count the old rows that are alive; looks only into chunks whose lifetimes straddle a bound."""
        total = 0
        for run in self.old:
            lifetimes = {} if run.ref is None else run.ref.lifetimes
            total += run.batch.num_rows
            for clock in bounds:
                if clock not in lifetimes or lifetimes[clock][0] < bounds[clock]:
                    total -= self._count_dead(run, bounds)
                    break
        return total

    def _count_dead(self, run: RowRun, bounds: Mapping[Clock, int]) -> int:
        passed = self._passed(run, bounds)
        if passed is None:
            mask = self._alive(run, bounds)
            return 0 if mask is None else len(mask) - len(mask.nonzero()[0])
        clock, bound = passed
        known = run.deaths
        found = known[1].before_bound(bound) if known is not None and known[0] == clock else None
        if found is None:
            # Most of what is counted from now on is counted without a look at all rows.
            deaths = Deaths.of(self.combinations(run.batch, run.first).ends_on(clock), bound)
            object.__setattr__(run, "deaths", (clock, deaths))
            found = deaths.before
        return found

    def _passed(self, run: RowRun, bounds: Mapping[Clock, int]) -> tuple[Clock, int] | None:
        # The bound by which rows of a large run die; None where there are several, or the run is small.
        if run.ref is None or run.batch.num_rows < self._dying:
            return None
        ends = run.ref.lifetimes
        passed = [(clock, at) for clock, at in bounds.items() if clock not in ends or ends[clock][0] < at]
        return passed[0] if len(passed) == 1 else None

    def finish(
        self,
        store: ChunkStore,
        name: str,
        live: int,
        bounds: Mapping[Clock, int],
        rewriting: Rewriting | None = None,
    ) -> StateListing:
        """Store the step's rows, compact, and list the chunks; `live` counts the rows alive, new ones included.

        Compaction that is not granted by `rewriting`, of which a lane has one for all its states, is left for later.
        """
        assert self.rows is not None
        new, rewriting = self.rows.new, rewriting or PACE.rewriting_in(0)
        trimmed = self._trim(self.old, bounds, rewriting)
        runs = [run for run in self._thinned(trimmed, bounds, rewriting) if run.batch.num_rows]
        if new.batch.num_rows:
            runs = [*runs, new]
        # The bounds of these chunks tell the rate of a stream, so small ones are left apart.
        while found := rows_to_merge([run.batch for run in runs]):
            merged = runs[found[0] : found[1]]
            if not rewriting.grants(sum([run.batch.num_rows for run in merged])):
                break
            runs[found[0] : found[1]] = self._merge(merged)
        runs = [run if run.ref else self._stored(store, f"{name}-{at}", run) for at, run in enumerate(runs)]
        chunks = tuple([run.ref for run in runs if run.ref is not None])
        lineage = self.spec.lineage.digest if self.spec.lineage else ""
        # Of many rows nothing is kept but what their batch has, so that they take no more memory.
        if runs and new.end - runs[0].first > MOST_KNOWN:
            runs = [run if run.held is None or run.batch.num_rows <= MOST_KNOWN else run.without_held() for run in runs]
        return StateListing(chunks, live, new.end, 0, lineage).made_of(runs, store, always=True)

    def _alive(self, run: RowRun, bounds: Mapping[Clock, int]) -> Mask | None:
        # None when all rows are alive.
        if id(run) not in self._masks:
            if run.held is None or self.relived:
                object.__setattr__(run, "held", self.combinations(run.batch, run.first))
            assert run.held is not None
            self._masks[id(run)] = run, run.held.alive(bounds)
        return self._masks[id(run)][1]

    def _stored(self, store: ChunkStore, name: str, run: RowRun) -> RowRun:
        lifetimes = run.known_lifetimes
        if lifetimes is None:
            lifetimes = self.combinations(run.batch, run.first).lifetimes()
        ref = store_chunk(store, name, run.batch, first=run.first, lifetimes=lifetimes)
        return RowRun(run.first, run.batch, ref, None, run.held)

    def _thinned(self, runs: list[RowRun], bounds: Mapping[Clock, int], rewriting: Rewriting) -> list[RowRun]:
        # Queries that share rows let some go early, so a run may be mostly dead before its front is.
        if self.spec.lineage is None or len(self.spec.lineage.filters) < 2:
            return runs
        return [self._thinned_run(run, bounds, rewriting) for run in runs]

    def _thinned_run(self, run: RowRun, bounds: Mapping[Clock, int], rewriting: Rewriting) -> RowRun:
        if run.ref is not None and is_alive(run.ref, bounds):
            return run
        mask = self._alive(run, bounds)
        if mask is None or not is_sparse(live := int(mask.sum()), len(mask)) or not rewriting.grants(live):
            return run
        return run.among(mask)

    def _merge(self, runs: list[RowRun]) -> list[RowRun]:
        gaps = [1 for one, other in pairwise(runs) if one.end != other.first]
        if gaps or [1 for run in runs if run.is_numbered]:
            runs = [replace(s, batch=numbered(s)) for s in runs]
        batches = [s.batch for s in runs]
        names = kept_columns([name for batch in batches for name in batch.schema.names], self.spec.columns)
        return [RowRun(runs[0].first, united(batches, names), None, _united([s.known_lifetimes for s in runs]))]

    def _trim(self, runs: list[RowRun], bounds: Mapping[Clock, int], rewriting: Rewriting) -> list[RowRun]:
        # Dead rows are cut off once they are most of the first chunk.
        if not runs:
            return runs
        first = runs[0]
        if first.is_numbered or (first.ref is not None and is_alive(first.ref, bounds)):
            return runs
        if self._passed(first, bounds):
            alive = first.batch.num_rows - self._count_dead(first, bounds)
            if alive > rewriting.left or not is_sparse(alive, first.batch.num_rows):
                return runs  # What is cut off are dead rows, and there are too few of them, or too many others.
        mask = self._alive(first, bounds)
        if mask is None:
            return runs
        dead = int(mask.argmax())
        if not mask[dead]:
            dead = len(mask)
        if not is_sparse(len(mask) - dead, len(mask)) or not rewriting.grants(len(mask) - dead):
            return runs
        assert first.held is not None
        held = Combinations.of(first.held.heading, first.held.words[:, dead:].copy())
        left = RowRun(first.first + dead, _without(dead, first.batch), None, held.lifetimes(), held)
        return [left, *runs[1:]]

    def _until(self, clock: Clock, now: Words) -> Words:
        window = self.spec.window
        if window is not None and window.kind == "range" and clock == EVENT_TIME:
            return later(now, window.size)
        if window is not None and window.kind == "rows" and clock == Clock(self.spec.stream):
            return later(now, window.size - 1)
        return np.full(len(now), FOREVER, np.int64)


def kept_columns(names: Iterable[str], columns: Iterable[str]) -> list[str]:
    """Select the columns that are kept, in the order of chunks: internal ones, and those that queries read."""
    return sorted({name for name in names if name[:1] == "_"} | {*columns})


def relabelled(batch: pa.RecordBatch, lineage: Lineage, step: int) -> pa.RecordBatch:
    """Set the bits of rows kept from before for the filters that are new in this step.

    A filter that reads a column which the rows do not have lets none of them pass.
    """
    words = _words(batch, LINEAGE) & sum(f.mask for f in lineage.filters if f.since != step)
    for one in lineage.filters:
        columns = {c.name for condition in lineage.conditions_of(one) for c in condition.columns()}
        if one.since == step and not one.future_only and columns <= set(batch.schema.names):
            words = words | np.where(all_hold(lineage.conditions_of(one), batch), one.mask, 0)
    at = batch.schema.get_field_index(LINEAGE)
    return batch.set_column(at, LINEAGE, pa.array(words, pa.int64()))


def _united(lifetimes: Sequence[Lifetimes | None]) -> Lifetimes | None:
    # None unless all are known.
    known = [one for one in lifetimes if one is not None]
    if len(known) < len(lifetimes):
        return None
    return {clock: (min([one[clock][0] for one in known]), max([one[clock][1] for one in known])) for clock in known[0]}


def _words(batch: pa.RecordBatch, name: str) -> npt.NDArray[np.int64]:
    words: npt.NDArray[np.int64] = batch.column(name).to_numpy()
    return words


def _without(dead: int, batch: pa.RecordBatch) -> pa.RecordBatch:
    # A copy, so that the dead rows' memory is freed.
    left, width = batch.slice(dead), width_of(batch.schema)
    if plain_size(batch, width) is not None:
        copied = pa.concat_batches([left], memory_pool=POOL)
        if plain_size(copied, width) is not None:  # Else it has got bitmaps that mark nothing.
            return copied
    return left.take(pa.array(np.arange(left.num_rows)))  # Five times as slow.
