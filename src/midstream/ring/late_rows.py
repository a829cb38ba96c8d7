"""Rows of a source by their numbers, whose columns are read when they are asked for (late materialisation)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from midstream.ring.columns import Words
from midstream.state.rows import BaseRows, RowRun


def value_sizes(column: pa.Array) -> Words:
    """Compute the bytes of each value; texts and lists differ in size, and a NULL of them has none.

    >>> value_sizes(pa.array(["ab", None, ""])), value_sizes(pa.array([1, None])), value_sizes(pa.array([[1.0], []]))
    (array([2, 0, 0]), array([8, 8]), array([8, 0]))
    """
    kind = column.type
    if pt.is_dictionary(kind):
        return value_sizes(column.dictionary_decode())
    if _is_varying(kind):
        return _numbers(pc.binary_length(column))
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        counts = _numbers(pc.list_value_length(column))
        until = np.concatenate([[0], np.cumsum(value_sizes(column.flatten()))])
        ends = np.cumsum(counts)
        return np.asarray(until[ends] - until[ends - counts], np.int64)
    if pt.is_struct(kind):
        return np.asarray(sum(map(value_sizes, column.flatten()), np.zeros(len(column), np.int64)), np.int64)
    return np.full(len(column), fixed_size(kind) or 0, np.int64)


def fixed_size(kind: pa.DataType) -> int | None:
    """Return the bytes of a value of this type; None where values differ.

    >>> fixed_size(pa.int32()), fixed_size(pa.null()), fixed_size(pa.string())
    (4, 0, None)
    """
    if pt.is_nested(kind) or pt.is_dictionary(kind) or _is_varying(kind):
        return None
    try:
        return int(kind.bit_width + 7) // 8
    except ValueError:  # A NULL type, or one that no value's size is known of.
        return 0


def _is_varying(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind) or pt.is_binary(kind) or pt.is_large_string(kind) or pt.is_large_binary(kind))


def _numbers(counts: pa.Array) -> Words:
    return np.asarray(pc.fill_null(counts, 0).to_numpy(zero_copy_only=False), np.int64)


class NumberedBatches:
    """Batches of one source whose rows are numbered from 0, through all of them."""

    def __init__(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Number the rows of batches, one at least, which have the same columns."""
        first = np.cumsum([0, *(batch.num_rows for batch in batches)]).tolist()
        *old, new = (RowRun(number, batch) for number, batch in zip(first, batches, strict=False))
        self.rows = BaseRows(old, new)
        self._first = {id(batch): number for number, batch in zip(first, batches, strict=False)}

    def at(self, batch: pa.RecordBatch, places: Words) -> LateRows:
        """Refer to the rows at these places of one of the batches."""
        return LateRows(self.rows, places + self._first[id(batch)])


class LateRows:
    """Rows of some batches, of which each column is gathered once, and only if it is read.

    Partial results go from hop to hop in this way: what a row brings to the select list only is gathered for the
    results alone, or, of texts and lists, where their size is asked for. (Wang's partial results are rows; which of
    their columns travel is not said.)

    >>> rows = LateRows.of(pa.record_batch({"k": [1, 2, 3]}))
    >>> rows.take(np.array([2, 0])).take(np.array([1, 1])).column("k").to_pylist()
    [1, 1]
    """

    def __init__(self, rows: BaseRows, numbers: Words) -> None:
        """Refer to the rows of these `numbers`."""
        self._rows, self._numbers = rows, numbers
        self._columns: dict[str, pa.Array] = {}

    @staticmethod
    def of(batch: pa.RecordBatch) -> LateRows:
        """Refer to all rows of a batch."""
        found = LateRows(BaseRows((), RowRun(0, batch)), np.arange(batch.num_rows))
        found._columns.update(zip(batch.schema.names, batch.columns, strict=True))
        return found

    @staticmethod
    def together(pieces: Sequence[LateRows]) -> LateRows:
        """Concatenate pieces that have the same columns."""
        distinct = {id(piece._rows): piece._rows for piece in pieces}
        if len(distinct) == 1:
            return LateRows(pieces[0]._rows, np.concatenate([piece._numbers for piece in pieces]))
        runs = [run for rows in distinct.values() for run in (*rows.old, rows.new)]
        sizes = [rows.new.end for rows in distinct.values()]
        shifts = dict(zip(distinct, np.cumsum([0, *sizes[:-1]]).tolist(), strict=True))
        numbers = np.concatenate([piece._numbers + shifts[id(piece._rows)] for piece in pieces])
        return LateRows(NumberedBatches([run.batch for run in runs]).rows, numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        names: list[str] = self._rows.new.batch.schema.names
        return names

    def take(self, at: Words) -> LateRows:
        """Select the rows at these places."""
        return LateRows(self._rows, self._numbers[at])

    def column(self, name: str) -> pa.Array:
        """Read a column."""
        if name not in self._columns:
            if name not in self.names:
                raise KeyError(name)
            self._columns[name] = self._rows.fetch(name, self._numbers)
        return self._columns[name]

    def columns(self) -> list[pa.Array]:
        """Read all columns."""
        return [self.column(name) for name in self.names]

    def size(self, at: Words) -> int:
        """Count the bytes of the values of the rows at these places, however they are sent."""
        fixed, varying = self._sizes
        return fixed * len(at) + (0 if varying is None else int(varying[at].sum()))

    @cached_property
    def _sizes(self) -> tuple[int, Words | None]:
        # The bytes of every row's values of fixed size, and of each row's others; None where there are no others.
        known = {field.name: fixed_size(field.type) for field in self._rows.new.batch.schema}
        varying = [value_sizes(self.column(name)) for name, size in known.items() if size is None]
        return sum(size or 0 for size in known.values()), np.sum(varying, axis=0) if varying else None
