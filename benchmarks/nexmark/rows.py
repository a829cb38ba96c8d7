"""NEXMark's streams in batches, the same for all peers."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from midstream.demo.nexmark import START, generate

LATER = 300_000_000
"""So long after the last row, in microseconds, comes the one that closes all windows; it finds no partner."""

NOWHERE = {"channel": "Apple", "url": "https://www.nexmark.com/a/b/c/item.htm?query=1"}
"""What that row has in texts that queries take apart."""


@dataclass(frozen=True)
class Batches:
    """So many `events`, `per_second` of event time, in `count` batches of equal events and one that closes all windows.

    A window is answered once the watermark has passed its end, which engines put at different moments: after the last
    batch, of one row a stream, all have answered the same.
    """

    events: int
    per_second: int
    count: int
    seed: int = 0

    @property
    def stream_names(self) -> Collection[str]:
        """The streams there are."""
        return _drawn(self).keys()

    def schema(self, stream: str) -> pa.Schema:
        """The columns of a stream."""
        schema: pa.Schema = _drawn(self)[stream].schema
        return schema

    def steps(self, streams: Collection[str]) -> Iterator[dict[str, pa.Table]]:
        """What some streams bring in each batch, the closing one last.

        >>> [step["bid"].num_rows for step in Batches(1000, 10, 2).steps(["bid"])]
        [460, 460, 1]
        """
        drawn = {stream: _drawn(self)[stream] for stream in streams}
        for number in range(self.count):
            yield {stream: self._part(table, number) for stream, table in drawn.items()}
        yield {stream: self._closing(table.schema) for stream, table in drawn.items()}

    def write(self, folder: Path) -> None:
        """Put all of it into Parquet files: one folder a stream, one file a batch, a second apart."""
        first = time.time() - self.count - 1
        for number, tables in enumerate(self.steps(self.stream_names)):
            for stream, table in tables.items():
                (folder / stream).mkdir(parents=True, exist_ok=True)
                path = folder / stream / f"{number:05d}.parquet"
                pq.write_table(table, path)
                os.utime(path, (first + number, first + number))

    def _part(self, table: pa.Table, number: int) -> pa.Table:
        begin, end = (table.num_rows * n // self.count for n in (number, number + 1))
        return table.slice(begin, end - begin)

    def _closing(self, schema: pa.Schema) -> pa.Table:
        at = START + self.events * 1_000_000 // self.per_second + LATER
        values: dict[str, Any] = {}
        for field in schema:
            is_time, is_text = pa.types.is_timestamp(field.type), pa.types.is_string(field.type)
            values[field.name] = at if is_time else NOWHERE.get(field.name, "") if is_text else -1
        arrays = [pa.array([values[field.name]]).cast(field.type) for field in schema]
        return pa.table(arrays, schema=schema)


@cache
def _drawn(batches: Batches) -> dict[str, pa.Table]:
    """All rows but the closing ones; their times are in UTC."""
    tables = vars(generate(batches.events, batches.seed, batches.per_second))
    return {stream: _in_utc(table) for stream, table in tables.items()}


def _in_utc(table: pa.Table) -> pa.Table:
    fields = [
        field.with_type(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))
