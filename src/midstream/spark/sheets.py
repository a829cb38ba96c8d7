"""Late rows and dead letters as tables: what came, and why it did not enter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from midstream.spark.unpack import Share, declared
from midstream.state.base_state import TIME
from midstream.step.admit import REASON, WATERMARK

MOMENT = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Sheet:
    """Some rows for an output; no table is made where there are none."""

    rows: int = 0
    table: pa.Table = None


def late_sheet(share: Share, chosen: Any, readable: Any, watermark: int) -> Sheet:
    """The rows that came after the watermark of their stream, with the `_watermark` they missed."""
    if chosen is None:
        return Sheet()
    late = ~chosen if readable is None else readable & ~chosen
    if not late.any():
        return Sheet()
    rows = share.rows.filter(pa.array(late))
    columns = declared(share.stream, rows)
    if share.stream.timestamp not in columns:
        columns[share.stream.timestamp] = rows.column(TIME).view(pa.timestamp("us")).cast(MOMENT)
    columns[WATERMARK] = pa.array(np.full(rows.num_rows, watermark), pa.int64()).view(MOMENT)
    return Sheet(rows.num_rows, pa.table(columns))


def dead_sheet(share: Share, readable: Any) -> Sheet:
    """The rows whose timestamp could not be read, with the `_reason`."""
    if readable is None:
        return Sheet()
    rows, stream = share.rows.filter(pa.array(~readable)), share.stream
    columns = declared(stream, rows)
    reasons = [f"timestamp column {stream.timestamp!r} is NULL"] * rows.num_rows
    if stream.raw is not None:
        columns[stream.timestamp] = rows.column(stream.raw)
        texts = columns[stream.timestamp].to_pylist()
        reasons = [
            reason if text is None else f"column {stream.timestamp!r}: cannot read {text[:80]!r} as a timestamp"
            for reason, text in zip(reasons, texts, strict=True)
        ]
    columns.setdefault(stream.timestamp, pa.nulls(rows.num_rows, MOMENT))
    columns[REASON] = pa.array(reasons, pa.string())
    return Sheet(rows.num_rows, pa.table(columns))
