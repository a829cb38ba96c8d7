"""Users' operators for tests."""

from __future__ import annotations

import json
import zlib
from typing import Any

import pyarrow as pa

SCHEMA = pa.schema(
    [("by", pa.string()), ("ts", pa.int64()), ("row", pa.string()), ("alive", pa.string()), ("told", pa.int64())]
)


class Alive:
    """Tells for each row all values that hold at its time: everything it remembers shows."""

    def __init__(self, by: str = "") -> None:
        self.by = by
        self.rows: list[tuple[int, str]] = []
        self.told: int | None = None

    def feed(self, rows: pa.Table, watermark: int | None) -> pa.Table:
        self.told = watermark
        found = []
        times, ends = (rows[name].cast(pa.int64()).to_pylist() for name in ("_ts", "_until"))
        names = [name for name in rows.column_names if not name.startswith("_")]
        for at, (time, end) in enumerate(zip(times, ends, strict=True)):
            row = "/".join(str(rows[name][at].as_py()) for name in names)
            self.rows.append((self.end(time, end), row))
            holding = " ".join(sorted(value for last, value in self.rows if last >= time))
            found.append({"by": self.by, "ts": time, "row": row, "alive": holding, "told": watermark})
        if watermark is not None:
            self.rows = [(last, value) for last, value in self.rows if last >= watermark]
        return pa.Table.from_pylist(found, schema=SCHEMA)

    def end(self, time: int, end: int | None) -> int:
        return 2**62 if end is None else end

    def snapshot(self) -> Any:
        return {"rows": self.rows, "told": self.told}

    def restore(self, snapshot: Any) -> None:
        self.rows, self.told = [tuple(row) for row in snapshot["rows"]], snapshot["told"]


class Packed(Alive):
    """The same, remembered as bytes."""

    def snapshot(self) -> Any:
        return zlib.compress(json.dumps([self.rows, self.told]).encode())

    def restore(self, snapshot: Any) -> None:
        rows, self.told = json.loads(zlib.decompress(snapshot))
        self.rows = [tuple(row) for row in rows]


class Longer(Alive):
    """The same over seven seconds from each row's time."""

    remembers = 7_000_000

    def end(self, time: int, end: int | None) -> int:
        return time + self.remembers


class Failing(Alive):
    """Goes wrong in the way it is told, from the time on that it is told."""

    def __init__(self, how: str, after: int = 0) -> None:
        super().__init__()
        self.how, self.after = how, after

    def feed(self, rows: pa.Table, watermark: int | None) -> Any:
        found = super().feed(rows, watermark)
        if rows.num_rows and self.how and rows["_ts"].cast(pa.int64())[0].as_py() >= self.after:
            match self.how:
                case "raise":
                    raise ValueError("no such luck")
                case "list":
                    return found.to_pylist()
                case "columns":
                    return found.drop_columns(["told"])
                case "snapshot":
                    self.told = object()  # type: ignore[assignment]
        return found


class Mute:
    """No operator."""

    def feed(self, rows: pa.Table, watermark: int | None) -> pa.Table:
        return rows


CONSTANT = 3


class Other(Alive):
    """Has other columns."""

    def __init__(self) -> None:
        super().__init__()

    def feed(self, rows: pa.Table, watermark: int | None) -> pa.Table:
        return super().feed(rows, watermark).drop_columns(["by"])
