"""What a stream looks like."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from midstream.model.errors import InputError


@dataclass(frozen=True)
class StreamSchema:
    """A stream: its columns, which of them is the event time, and how much disorder it may have.

    `lateness` and `idle_timeout` are microseconds of event time; without an `idle_timeout` a silent stream holds the
    watermark for ever.

    >>> StreamSchema("A", pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))]), "ts").lateness
    0
    """

    name: str
    columns: pa.Schema
    timestamp: str
    lateness: int = 0
    idle_timeout: int | None = None

    def __post_init__(self) -> None:
        names = self.columns.names
        if self.timestamp not in names:
            raise InputError(
                f"stream {self.name!r} has no timestamp column {self.timestamp!r}",
                place=f"stream {self.name}",
                remedy=f"name one of its columns: {', '.join(names)}",
            )
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise InputError(
                f"stream {self.name!r} has columns of one name: {', '.join(doubled)}",
                place=f"stream {self.name}",
                remedy="rename one of them",
            )
        if self.lateness < 0 or (self.idle_timeout is not None and self.idle_timeout < 0):
            raise InputError(
                "lateness and idle_timeout cannot be negative",
                place=f"stream {self.name}",
                remedy="use a duration of zero or more",
            )

    def to_json(self) -> dict[str, Any]:
        """The stream as JSON values; the Arrow schema travels in Arrow's own encoding."""
        return {
            "name": self.name,
            "columns": base64.b64encode(self.columns.remove_metadata().serialize().to_pybytes()).decode(),
            "timestamp": self.timestamp,
            "lateness": self.lateness,
            "idle_timeout": self.idle_timeout,
        }

    @staticmethod
    def from_json(value: dict[str, Any]) -> StreamSchema:
        """The stream that `to_json` wrote."""
        columns = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(value["columns"])))
        return StreamSchema(value["name"], columns, value["timestamp"], value["lateness"], value["idle_timeout"])
