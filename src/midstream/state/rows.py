"""Base rows: a source's payload in order of arrival, reached by row number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from midstream.model.errors import InputError
from midstream.model.frozen import revised
from midstream.model.manifest import ChunkRef
from midstream.model.window import Clock
from midstream.state.chunk_store import Chunk
from midstream.state.combinations import Combinations, Deaths, Words
from midstream.state.compaction import MOST_BYTES
from midstream.state.gather import POOL, is_word, taken

NUMBER = "_number"
"""The internal column of row numbers, int64, in chunks out of whose middle dead rows were taken."""

Lifetimes = Mapping[Clock, tuple[int, int]]
"""For each clock the least and the greatest end of a lifetime."""


@dataclass(frozen=True)
class RowRun:
    """A run of rows with ascending numbers, consecutive ones unless the batch has them in a column.

    `ref` is None for rows that are not in the store yet; `lifetimes` are then the least and the greatest end of their
    lifetimes by clock, if they are known.
    """

    first: int
    batch: pa.RecordBatch
    ref: ChunkRef | None = None
    lifetimes: Lifetimes | None = None
    held: Combinations | None = field(default=None, compare=False, repr=False)
    """Its rows as combinations of one, where they are known."""
    deaths: tuple[Clock, Deaths] | None = field(default=None, init=False, compare=False, repr=False)
    """When the next of its rows die, on the clock that this was last asked for."""
    _columns: dict[str, pa.Array] = field(default_factory=dict, init=False, compare=False, repr=False)

    @property
    def known_lifetimes(self) -> Lifetimes | None:
        """The lifetimes of the rows, if they are known."""
        return self.lifetimes if self.ref is None else self.ref.lifetimes

    @property
    def end(self) -> int:
        """One past the number of its last row, where the numbers are consecutive."""
        return self.first + int(self.batch.num_rows)

    def column(self, name: str) -> pa.Array:
        """Return a column, kept with the run because each step asks for the same ones."""
        found = self._columns.get(name)
        if found is None:
            found = self._columns[name] = self.batch.column(name)
        return found

    @property
    def is_numbered(self) -> bool:
        """Whether the batch has the numbers in a column."""
        return bool(self.batch.schema.get_field_index(NUMBER) >= 0)

    @property
    def numbers(self) -> Words:
        """The number of each row."""
        if self.is_numbered:
            return np.asarray(self.batch.column(NUMBER).to_numpy(zero_copy_only=True), np.int64)
        return np.arange(self.first, self.end, dtype=np.int64)

    def without_held(self) -> RowRun:
        """Forget its combinations; they are made again when they are asked for."""
        return revised(self, held=None)

    def read_as(self, chunk: Chunk) -> RowRun:
        """Return the same rows in a chunk of other memory."""
        return revised(self, batch=chunk.batch, held=None, _columns={})

    def among(self, mask: npt.NDArray[np.bool_]) -> RowRun:
        """Select the rows under a mask, with their numbers."""
        return RowRun(self.first, numbered(self).filter(pa.array(mask)))


def numbered(run: RowRun) -> pa.RecordBatch:
    """Return the rows of a run with their numbers as a column."""
    if run.is_numbered:
        return run.batch
    return run.batch.append_column(NUMBER, pa.array(run.numbers))


FEW_ROWS = 1 << 14
"""A column of so few rows is put together as a whole: taking from run after run costs more."""


FEW_BYTES = 1 << 20
"""Of texts and lists a column of so few bytes is put together, and none of more than `MOST_BYTES`."""

TOO_LARGE = "a column has more than 2 GB of strings or lists at a time, which is Arrow's limit"
FEWER = "give fewer rows in a step, or spread the query over more lanes"


def united(batches: Sequence[pa.RecordBatch], names: Sequence[str]) -> pa.RecordBatch:
    """Concatenate batches with the columns of these names, in order; NULL where a batch is older than a column."""
    schema = batches[0].schema
    if schema.names != names or any([batch.schema != schema for batch in batches]):
        kinds = {f.name: f.type for batch in batches for f in batch.schema if f.name in names}
        schema = pa.schema([(name, kinds[name]) for name in names if name in kinds])
        batches = [_shaped(batch, schema) for batch in batches]
    if len(batches) == 1:
        return batches[0]
    try:
        return pa.concat_batches(batches, memory_pool=POOL)
    except pa.ArrowInvalid as error:
        raise InputError(TOO_LARGE, place="rows of a lane", remedy=FEWER) from error


def one_batch(table: pa.Table, place: str) -> pa.RecordBatch:
    """Combine a table into one batch; raises an `InputError` of this place where Arrow would make several."""
    batches = table.to_batches()
    if len(batches) > 1:
        batches = table.combine_chunks().to_batches()
    if len(batches) > 1:
        raise InputError(TOO_LARGE, place=place, remedy=FEWER)
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def _shaped(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    here = set(batch.schema.names)
    columns = [batch.column(f.name) if f.name in here else pa.nulls(batch.num_rows, f.type) for f in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def take(table: pa.Table, places: Words) -> pa.Table:
    """Take the rows of a table of one chunk at these places."""
    columns = [taken(column.chunk(0), places) if column.num_chunks == 1 else column.take(pa.array(places))
               for column in table.columns]  # fmt: skip
    return pa.Table.from_arrays(columns, schema=table.schema)


def taken_rows(batch: pa.RecordBatch, places: Words) -> pa.RecordBatch:
    """Take the rows of a batch at these places."""
    columns = [taken(column, places) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema) if columns else batch.take(pa.array(places))


class _Layout:
    """Runs that have rows, each after the one before it, and how a row of them is found by its number.

    `numbers` are those of all rows where a run has them in a column. If the runs are `consecutive`, no number is
    missing between them, and a row is found by subtraction.
    """

    def __init__(self, runs: Sequence[RowRun]) -> None:
        self.runs = runs
        sparse = any([run.is_numbered for run in runs])
        self.numbers = np.concatenate([run.numbers for run in runs]) if sparse else None
        self.consecutive = all([run.end == after.first for run, after in pairwise(runs)])

    @cached_property
    def starts(self) -> Words:
        """The number of each run's first row."""
        return np.array([run.first for run in self.runs], np.int64)

    @cached_property
    def sizes(self) -> Words:
        """The rows of each run."""
        return np.array([run.batch.num_rows for run in self.runs], np.int64)

    @cached_property
    def places(self) -> Words:
        """The rows before each run."""
        return np.asarray(np.cumsum(self.sizes) - self.sizes)

    def position(self, refs: Words) -> Words:
        """Find the places of rows of these numbers, all runs put together."""
        if self.numbers is not None:
            return np.searchsorted(self.numbers, refs)
        if self.consecutive:
            return refs - self.runs[0].first
        run = np.searchsorted(self.starts, refs, "right") - 1
        shifts = self.starts - self.places
        return np.asarray(refs - shifts[run], np.int64)


class BaseRows:
    """The rows of one source that a step can see: those kept from before, and the step's own."""

    def __init__(self, old: Sequence[RowRun], new: RowRun) -> None:
        self.old, self.new = tuple(old), new
        self._whole: dict[str, pa.Array] = {}
        # Several columns are read of the same rows: where these are is found once.
        self._found: tuple[Words, Words] | None = None

    @cached_property
    def _layout(self) -> _Layout:
        # Of many sources a small step reads few: what reading takes is made when it is asked for.
        return _Layout([s for s in (*self.old, self.new) if s.batch.num_rows])

    def read(self, name: str, label: str, combinations: Combinations) -> pa.Array:
        """Read a column for combinations that include this source under `label`."""
        if combinations is self.new.held:
            return self._column(self.new, name)
        return self.fetch(name, combinations.numbers_of(label))

    def fetch(self, name: str, refs: Words) -> pa.Array:
        """Fetch a column for the rows of these numbers, in their order."""
        if not len(refs):
            return self._column(self.new, name).slice(0, 0)
        if self._is_new(refs):
            return self._column(self.new, name)
        layout = self._layout
        if layout.numbers is None and len(layout.runs) == 1:
            return taken(self._column(layout.runs[0], name), refs - layout.runs[0].first)
        whole = self._whole.get(name)
        if whole is None:
            whole = self._put_together(name, len(refs))
            if whole is None:
                return self._fetch_by_run(name, refs)
            self._whole[name] = whole
        found = self._found  # Read once, for several threads may read of the same rows.
        if found is None or found[0] is not refs:
            found = self._found = refs, layout.position(refs)
        return taken(whole, found[1])

    def holds(self, refs: Words) -> npt.NDArray[np.bool_]:
        """Test for each of these numbers whether there is a row of it."""
        layout = self._layout
        if layout.numbers is not None:
            at = np.searchsorted(layout.numbers, refs)
            return np.asarray(np.append(layout.numbers, -1)[at] == refs, np.bool_)
        run = np.searchsorted(layout.starts, refs, "right") - 1
        ends = np.append(layout.starts + layout.sizes, -1)
        return np.asarray(refs < ends[run], np.bool_)

    def _column(self, run: RowRun, name: str) -> pa.Array:
        # Rows stored before any query read a column have NULLs there.
        try:
            return run.column(name)
        except KeyError:
            pass
        kinds = [s.batch.schema.field(name).type for s in (self.new, *self.old) if name in s.batch.schema.names]
        return pa.nulls(run.batch.num_rows, kinds[0] if kinds else pa.int64())

    def _put_together(self, name: str, count: int) -> pa.Array | None:
        # None where the column is large compared to the `count` values to read.
        runs = self._layout.runs
        total = sum([run.batch.num_rows for run in runs])
        many = self._layout.numbers is not None or count * 8 >= total
        if not many and total > FEW_ROWS:
            return None
        columns = [self._column(run, name) for run in runs]
        if not is_word(columns[0].type):
            size = sum([column.nbytes for column in columns])
            if size > FEW_BYTES and not (many and size <= MOST_BYTES):
                return None
        return pa.concat_arrays(columns, memory_pool=POOL)

    def _is_new(self, refs: Words) -> bool:
        new = self.new
        if new.held is not None:
            return len(refs) == new.held.count and np.count_nonzero(refs == new.held.words[0]) == len(refs)
        return (
            len(refs) == new.batch.num_rows
            and int(refs[0]) == new.first
            and int(refs[-1]) == new.end - 1
            and bool((np.diff(refs) == 1).all())
        )

    def _fetch_by_run(self, name: str, refs: Words) -> pa.Array:
        layout = self._layout
        places = layout.position(refs)
        run = np.searchsorted(layout.places, places, "right") - 1
        order = np.argsort(run, kind="stable")
        pieces, counts = [], np.bincount(run, minlength=len(layout.runs))
        start = 0
        for at, count in enumerate(counts.tolist()):
            if count:
                inside = places[order[start : start + count]] - layout.places[at]
                pieces.append(self._column(layout.runs[at], name).take(pa.array(inside)))
                start += count
        if not pieces:
            return self._column(self.new, name).slice(0, 0)
        back = np.empty(len(refs), np.int64)
        back[order] = np.arange(len(refs))
        return pa.concat_arrays(pieces).take(pa.array(back))
