"""Texts that Arrow has no room for in one column: told as what they are, and no row is left out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import midstream as ms
from midstream.model.errors import InputError
from midstream.runtime.result_operator import Answer
from midstream.state import rows
from midstream.state.rows import NUMBER, BaseRows, RowRun, united
from midstream.units.held import held_id, hold_back

SIZE = 1_200_000_000


def huge() -> pa.RecordBatch:
    """A row with a text of more than half of what a column has room for, of memory that nobody has written."""
    zeros = np.zeros(SIZE, np.uint8)
    offsets = np.array([0, SIZE], np.int32)
    text = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(offsets), pa.py_buffer(zeros)])
    return pa.record_batch({"t": text, "ts": pa.array([0], pa.timestamp("us"))})


def test_what_has_no_room_in_a_batch_is_an_error() -> None:
    one = huge()
    with pytest.raises(InputError, match="2 GB"):
        united([one, one], ["t", "ts"])


def test_rows_that_a_migration_holds_back_are_told_the_same() -> None:
    both = pa.Table.from_batches([huge(), huge()])
    lane: Any = SimpleNamespace(table=lambda table_id: None, keep=lambda table_id, rows: None)
    with pytest.raises(InputError, match="2 GB"):
        hold_back(lane, held_id("q", 0), Answer(both, np.zeros(2, np.int64)))


def test_a_push_of_too_long_texts_is_refused() -> None:
    engine = ms.Engine()
    engine.create_stream("A", "t VARCHAR, ts TIMESTAMP", timestamp="ts")
    engine.add_query("q", "SELECT t FROM A")
    with pytest.raises(InputError, match="stream A"):
        engine.push({"A": pa.Table.from_batches([huge(), huge()])})


def test_columns_too_large_to_be_put_together_are_read_run_by_run(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"text {number}" for number in range(12)]
    old = [RowRun(0, pa.record_batch({"t": texts[:5], NUMBER: [0, 2, 4, 6, 8]})),
           RowRun(10, pa.record_batch({"t": texts[5:9], NUMBER: [10, 11, 14, 15]}))]  # fmt: skip
    new = RowRun(20, pa.record_batch({"t": texts[9:]}))
    refs = np.array([21, 8, 0, 14, 14, 20, 2])
    whole = BaseRows(old, new).fetch("t", refs)
    monkeypatch.setattr(rows, "MOST_BYTES", 0)
    monkeypatch.setattr(rows, "FEW_BYTES", 0)
    apart = BaseRows(old, new)
    assert apart.fetch("t", refs).to_pylist() == whole.to_pylist()
    assert whole.to_pylist() == [texts[at] for at in (10, 4, 0, 7, 7, 9, 1)]
    assert not apart._whole
