"""Files of results in Parquet, read back."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from midstream.model.errors import SinkError


def parquet_rows(data: pa.Buffer | bytes, place: str) -> pa.Table:
    """Read the rows of a file that has these data; raises `SinkError` where it is damaged."""
    try:
        return pq.read_table(pa.BufferReader(data))
    except (pa.ArrowException, OSError) as error:
        raise SinkError(
            "the file is damaged: it cannot be read as Parquet", place=place,
            remedy="restore it from a backup, or move it away: its rows are missing then",
        ) from error  # fmt: skip
