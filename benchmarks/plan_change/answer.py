"""Which results a run gave, as a multiset of marks, and what another run lost or doubled against it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Marks = npt.NDArray[np.uint64]


def marks(table: pa.Table) -> Marks:
    """A 64-bit hash of each row of integers and times; equal rows have equal marks, whoever made them."""
    found = np.zeros(table.num_rows, np.uint64)
    for name in sorted(table.column_names):
        found = _mixed(found ^ _mixed(integers(table, name).view(np.uint64) + np.uint64(0x9E3779B97F4A7C15)))
    return found


def integers(table: pa.Table, name: str) -> npt.NDArray[np.int64]:
    """A column as integers; times as microseconds."""
    column = table.column(name)
    if pa.types.is_timestamp(column.type):
        column = pc.cast(pc.cast(column, pa.timestamp("us", column.type.tz)), pa.int64())
    found: npt.NDArray[np.int64] = column.to_numpy().astype(np.int64, copy=False)
    return found


def repeated(table: pa.Table, taken: Mapping[str, int]) -> npt.NDArray[np.bool_]:
    """Which results are made of nothing but rows that had been taken in before: a restart gives them a second time."""
    found = np.ones(table.num_rows, bool)
    for stream, count in taken.items():
        found &= integers(table, stream.lower()) < count
    return found


def lost_and_doubled(reference: Marks, own: Marks) -> tuple[int, int]:
    """How many results are missing, and how many are too many.

    >>> lost_and_doubled(np.array([1, 2, 2], np.uint64), np.array([2, 2, 2, 3], np.uint64))
    (1, 2)
    """
    values, places = np.unique(np.concatenate([reference, own]), return_inverse=True)
    wanted = np.bincount(places[: len(reference)], minlength=len(values))
    there = np.bincount(places[len(reference) :], minlength=len(values))
    return int(np.maximum(wanted - there, 0).sum()), int(np.maximum(there - wanted, 0).sum())


def _mixed(values: Marks) -> Marks:
    """The last rounds of splitmix64."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
