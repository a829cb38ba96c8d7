"""Rows that are read late are those that were taken: whatever batches they are of, however they were put together."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.ring.late_rows import LateRows, NumberedBatches, value_sizes

COUNTS = st.lists(st.integers(0, 5), min_size=1, max_size=4)


def batches_of(counts: list[int]) -> list[pa.RecordBatch]:
    """Batches of so many rows each, every row of them different."""
    first = np.cumsum([0, *counts])
    return [
        pa.record_batch({
            "n": pa.array(range(begin, begin + count), pa.int64()),
            "t": pa.array([None if row % 3 == 0 else "x" * row for row in range(begin, begin + count)], pa.string()),
        })
        for begin, count in zip(first.tolist(), counts, strict=False)
    ]  # fmt: skip


@given(counts=COUNTS, data=st.data())
def test_pieces_of_batches_are_read_as_what_was_taken(counts: list[int], data: st.DataObject) -> None:
    several = [batches_of(counts), batches_of([3, *counts])]
    pieces, expected = list[LateRows](), list[pa.Table]()
    for batches in several:
        known = NumberedBatches(batches)
        for batch in batches:
            if batch.num_rows:
                at = np.array(data.draw(st.lists(st.integers(0, batch.num_rows - 1), max_size=6)), np.int64)
                pieces.append(known.at(batch, at))
                expected.append(pa.Table.from_batches([batch]).take(pa.array(at, pa.int64())))
    if not pieces:
        return
    found, whole = LateRows.together(pieces), pa.concat_tables(expected)
    at = np.array(
        data.draw(st.lists(st.integers(0, max(len(found) - 1, 0)), max_size=6 if len(found) else 0)), np.int64
    )
    for rows, table in ((found, whole), (found.take(at), whole.take(pa.array(at, pa.int64())))):
        assert len(rows) == table.num_rows
        assert pa.Table.from_arrays(rows.columns(), names=rows.names).equals(table)
    sizes = sum(value_sizes(column.combine_chunks()) for column in whole.columns)
    assert found.size(at) == int(sizes[at].sum())


def test_only_columns_that_are_read_are_gathered() -> None:
    (batch,) = batches_of([5])
    rows = NumberedBatches([batch]).at(batch, np.array([4, 2]))
    first = rows.take(np.array([1]))
    assert first.column("n").to_pylist() == [2]
    assert (set(first._columns), set(rows._columns)) == ({"n"}, set())


def test_a_column_that_is_not_there_is_not_made_up() -> None:
    (batch,) = batches_of([2])
    with pytest.raises(KeyError):
        LateRows.of(batch).column("other")


def test_long_texts_of_many_rows_are_not_put_together_for_few() -> None:
    """A column of texts is copied as a whole only where it is small beside what is read of it."""
    batches = [pa.record_batch({"t": [letter * 3_000] * 400, "n": range(400)}) for letter in "ab"]
    rows = NumberedBatches(batches).at(batches[1], np.array([7, 9]))
    assert rows.column("t").to_pylist() == ["b" * 3_000] * 2
    assert rows.column("n").to_pylist() == [7, 9]
    assert set(rows._rows._whole) == {"n"}


@pytest.mark.parametrize("kind", [pa.int32(), pa.timestamp("us"), pa.null(), pa.list_(pa.int64()), pa.binary()])
def test_the_size_of_no_rows_is_nothing(kind: pa.DataType) -> None:
    rows = LateRows.of(pa.RecordBatch.from_arrays([pa.nulls(2, kind)], names=["c"]))
    assert rows.size(np.zeros(0, np.int64)) == 0
