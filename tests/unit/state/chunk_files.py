"""Small chunks, and the files they are in."""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from midstream.model.manifest import ChunkRef
from midstream.storage import files as store_files
from midstream.storage.files import FileStore

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def batch(rows: int = 3, seed: int = 0) -> pa.RecordBatch:
    random = np.random.default_rng(seed)
    return pa.record_batch({"k": random.integers(0, 99, rows), "v": random.random(rows)})


def put(store: FileStore, name: str, rows: pa.RecordBatch) -> ChunkRef:
    final, size, checksum = store.put(name, rows)
    return ChunkRef(final, rows.num_rows, size, checksum)


def file_of(store: FileStore, ref: ChunkRef) -> Path:
    return store.root / f"{ref.name}.arrow"


def forget_everything() -> None:
    """As if this process had only just begun."""
    opened = store_files._opened()
    for path in [*opened._batches, *opened._verified]:
        opened.drop(path)
