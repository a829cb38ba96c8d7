"""Chunks that are damaged, none, or of another format version."""

import os
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from midstream.model.errors import CheckpointError, OtherFormatError
from midstream.model.manifest import FORMAT_SINCE, FORMAT_VERSION, ChunkRef
from midstream.storage.files import FileStore
from tests.unit.state.chunk_files import batch, file_of, put


def damage_truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def damage_empty(path: Path) -> None:
    os.truncate(path, 0)


def damage_longer(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"x")


def damage_remove(path: Path) -> None:
    path.unlink()


def damage_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (damage_truncate, "bytes instead of"),
        (damage_empty, "has 0 bytes instead of"),
        (damage_longer, "bytes instead of"),
        (damage_remove, "is missing"),
        (damage_folder, "cannot read"),
    ],
)
def test_a_damaged_file(store: FileStore, damage: Callable[[Path], None], message: str) -> None:
    ref = put(store, "A/1-x", batch(1000))
    damage(file_of(store, ref))
    with pytest.raises(CheckpointError, match=message) as caught:
        store.get(ref)
    assert caught.value.place == str(file_of(store, ref))
    assert caught.value.remedy


def test_any_flipped_byte_is_found(store: FileStore) -> None:
    ref = put(store, "A/1-x", batch(3))
    path = file_of(store, ref)
    whole = path.read_bytes()
    with path.open("r+b", buffering=0) as file:
        for at, byte in enumerate(whole):
            os.pwrite(file.fileno(), bytes([byte ^ 0x10]), at)
            with pytest.raises(CheckpointError, match="damaged: its checksum does not match"):
                store.get(ref)
            os.pwrite(file.fileno(), bytes([byte]), at)
    assert store.get(ref).equals(batch(3))


def rewritten(store: FileStore, data: bytes) -> ChunkRef:
    """A chunk whose file has another inside, with a checksum to match."""
    path = store.root / "A" / "1-x.arrow"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return ChunkRef("A/1-x", 3, len(data), zlib.crc32(data))


def as_file(rows: pa.RecordBatch, times: int = 1) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, rows.schema) as writer:
        for _ in range(times):
            writer.write_batch(rows)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    ("metadata", "known"),
    [
        ({"midstream.format": "1"}, "1 of midstream 0.1.0"),
        ({"midstream.format": "5"}, "5 of midstream 0.1.0"),
        ({"midstream.format": "2", "midstream": "0.3.0"}, "2 of midstream 0.3.0"),
    ],
)
def test_a_chunk_of_another_format(store: FileStore, metadata: dict[str, str], known: str) -> None:
    ref = rewritten(store, as_file(batch().replace_schema_metadata(metadata)))
    with pytest.raises(OtherFormatError, match=f"format {known}, but .*Remedy: use midstream"):
        store.get(ref)


OURS = {"midstream.format": str(FORMAT_VERSION), "midstream": FORMAT_SINCE}
EMPTY = as_file(batch().replace_schema_metadata(OURS), times=0)


@pytest.mark.parametrize("data", [b"not Arrow", as_file(batch()), EMPTY])
def test_a_chunk_that_is_none(store: FileStore, data: bytes) -> None:
    ref = rewritten(store, data)
    with pytest.raises(CheckpointError, match="cannot be read"):
        store.get(ref)
