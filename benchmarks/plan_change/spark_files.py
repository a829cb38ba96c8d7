"""What the Spark host hands over and takes back: files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


@dataclass
class Inbox:
    """The folders that a job reads; a file a stream and tick, put in place at once."""

    root: Path
    files: int = 0

    def put(self, tables: dict[str, pa.Table]) -> None:
        """Hand rows over."""
        ready = []
        for stream, table in tables.items():
            (self.root / stream).mkdir(parents=True, exist_ok=True)
            if table.num_rows:
                pq.write_table(table, self.root / f"{stream}.tmp")
                ready.append((self.root / f"{stream}.tmp", self.root / stream / f"{self.files:05d}.parquet"))
        for temporary, final in ready:
            temporary.rename(final)
        self.files += 1


def answer(folder: Path, streams: Sequence[str]) -> tuple[pa.Table, float | None]:
    """The results of a step and when they were out: the folder is put in place by a rename, which its status tells."""
    names = [*(stream.lower() for stream in streams), "_ts"]
    if not folder.is_dir():
        kinds = [*(pa.int64() for _ in names[:-1]), pa.timestamp("us", "UTC")]
        return pa.schema(list(zip(names, kinds, strict=True))).empty_table(), None
    tables = [pq.read_table(file).select(names) for file in sorted(folder.glob("*.parquet"))]
    return pa.concat_tables(tables), os.stat(folder).st_ctime
