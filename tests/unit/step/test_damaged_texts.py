"""Texts that are not UTF-8, as Spark and files of older writers bring them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from midstream.admission.admit import admit
from midstream.model.schema import StreamSchema


def texts(*values: bytes) -> pa.Array:
    """A column of texts that has these bytes."""
    raw = pa.array(values, pa.binary())
    return pa.StringArray.from_buffers(len(raw), raw.buffers()[1], raw.buffers()[2])


@pytest.mark.parametrize("nested", [False, True])
def test_a_row_with_one_is_a_dead_letter(nested: bool) -> None:
    values = texts(b"x", b"caf\xe9", b"caf\xc3\xa9")
    if nested:
        values = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), values)
    table = pa.table({"v": values, "ts": pa.array([1, 2, 3], pa.timestamp("us"))})
    found = admit(StreamSchema("A", table.schema, "ts"), table)
    found.rows.validate(full=True)
    assert found.rows.column("v").to_pylist() == ([["x"], ["café"]] if nested else ["x", "café"])
    found.dead.validate(full=True)
    assert found.dead.num_rows == 1 and "cannot read" in found.dead["_reason"][0].as_py()
