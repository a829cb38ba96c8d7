"""The shape of a scenario, and the generator that all of them share."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

BATCH_SPAN = 10_000_000
"""Stream time that one batch covers, in microseconds."""

WINDOW = 20_000_000
"""How far apart in time the rows of a result may be, in microseconds."""


@dataclass(frozen=True)
class Scenario:
    """A seeded input and one question about it, put in the words of each peer.

    `streams` gives the integer key columns of each stream; every stream also has `ts` (event time) and `v` (a double in
    [0, 1)). The texts differ in grammar only: all of them must give the same rows. The DuckDB text finds `ts` as a
    number of microseconds. `spark_as_written` is a text that Spark refuses; `spark` is then what users fall back on.
    `left_out` are peers that would show nothing new here.
    """

    name: str
    title: str
    streams: Mapping[str, tuple[str, ...]]
    rows: int
    keys: int
    midstream: str
    duckdb: str
    spark: str
    spark_as_written: str = ""
    left_out: tuple[str, ...] = ()
    batches: int = 10
    seed: int = 0

    @property
    def queries(self) -> Mapping[str, str]:
        """The one query of midstream."""
        return {"answer": self.midstream}

    @property
    def tables(self) -> Mapping[str, pa.Table]:
        """No scenario has a static table."""
        return {}

    @property
    def duckdb_rows(self) -> Mapping[str, str]:
        """What DuckDB's text finds of each stream."""
        return dict.fromkeys(self.streams, "* REPLACE (epoch_us(ts) AS ts)")

    @property
    def by_value(self) -> bool:
        """Answers of all peers have the same types."""
        return False

    def schema(self, stream: str) -> pa.Schema:
        """The columns of a stream."""
        keys = [(key, pa.int64()) for key in self.streams[stream]]
        return pa.schema([*keys, ("ts", pa.timestamp("us", "UTC")), ("v", pa.float64())])

    def spark_schema(self, stream: str) -> str:
        """The columns of a stream as Spark's DDL."""
        return ", ".join([*(f"{key} BIGINT" for key in self.streams[stream]), "ts TIMESTAMP", "v DOUBLE"])

    def table(self, stream: str, batch: int) -> pa.Table:
        """The rows that a stream brings in a batch, in order of time; the same on every call."""
        random = np.random.default_rng([self.seed, ord(stream), batch])
        start = batch * BATCH_SPAN
        columns: list[pa.Array] = [pa.array(random.integers(0, self.keys, self.rows)) for _ in self.streams[stream]]
        columns.append(pa.array(np.sort(random.integers(start, start + BATCH_SPAN, self.rows))))
        columns[-1] = columns[-1].cast(self.schema(stream).field("ts").type)
        columns.append(pa.array(random.random(self.rows)))
        return pa.Table.from_arrays(columns, schema=self.schema(stream))

    def steps(self) -> Iterator[dict[str, pa.Table]]:
        """The batches, each with one table a stream."""
        for batch in range(self.batches):
            yield {stream: self.table(stream, batch) for stream in self.streams}

    def write(self, folder: Path) -> None:
        """Put the input into Parquet files: one folder a stream, one file a batch, a second apart.

        Spark takes files in order of their modification times, which the system may give alike to files written in
        a moment.
        """
        first = time.time() - self.batches
        for number, tables in enumerate(self.steps()):
            for stream, table in tables.items():
                (folder / stream).mkdir(parents=True, exist_ok=True)
                path = folder / stream / f"{number:05d}.parquet"
                pq.write_table(table, path)
                os.utime(path, (first + number, first + number))

    def quick(self) -> Scenario:
        """A small version that shows that everything runs and agrees; its times mean nothing."""
        return replace(self, rows=min(self.rows, 2_000), keys=min(self.keys, 2_000), batches=4)
