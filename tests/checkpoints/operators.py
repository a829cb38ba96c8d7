"""A user's operator whose every answer shows all that it remembers."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

SCHEMA = pa.schema([("by", pa.string()), ("row", pa.string()), ("time", pa.int64()), ("companions", pa.int64())])


class Companions:
    """For each row the number of rows of earlier times that still hold at its time."""

    def __init__(self, by: str) -> None:
        self.by = by
        self.lifetimes: list[tuple[int, int]] = []

    def feed(self, rows: pa.Table, watermark: int | None) -> pa.Table:
        found = []
        names = [name for name in rows.column_names if not name.startswith("_")]
        times, ends = (rows[name].cast(pa.int64()).to_pylist() for name in ("_ts", "_until"))
        for at, (time, end) in enumerate(zip(times, ends, strict=True)):
            companions = sum(begin < time <= until for begin, until in self.lifetimes)
            row = "/".join(str(rows[name][at].as_py()) for name in names)
            found.append({"by": self.by, "row": row, "time": time, "companions": companions})
            self.lifetimes.append((time, end))
        if watermark is not None:
            self.lifetimes = [(begin, until) for begin, until in self.lifetimes if until >= watermark]
        return pa.Table.from_pylist(found, schema=SCHEMA)

    def snapshot(self) -> Any:
        return self.lifetimes

    def restore(self, snapshot: Any) -> None:
        self.lifetimes = [(begin, until) for begin, until in snapshot]
