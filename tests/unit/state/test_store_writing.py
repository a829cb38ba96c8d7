"""Chunks where writing is refused, breaks off, or is killed; and what is durable."""

import os
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from midstream.model.errors import CheckpointError, SinkError
from midstream.model.manifest import ChunkRef
from midstream.storage import disk
from midstream.storage.files import FileStore
from midstream.storage.local import LocalStorage
from midstream.storage.places import copied
from tests.unit.state.chunk_files import batch, file_of, linux_only, put


def test_a_path_under_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = FileStore(tmp_path / "file" / "child")
    with pytest.raises(SinkError, match="a part of this path is a file") as caught:
        store.put("A/1-x", batch())
    assert str(tmp_path) in caught.value.place
    with pytest.raises(CheckpointError):
        store.get(ChunkRef("A/1-x", 1, 1, 1))


def test_a_root_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SinkError, match="a part of this path is a file"):
        FileStore(tmp_path / "file").put("A/1-x", batch())


@linux_only
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="Remedy"):
        FileStore("/proc/nowhere").put("A/1-x", batch())


def test_a_folder_that_went_away_is_made_again(store: FileStore) -> None:
    ref = put(store, "A/1-x", batch())
    file_of(store, ref).unlink()
    (store.root / "A").rmdir()
    assert store.get(put(store, "A/1-x", batch())).equals(batch())


def in_another_process(code: str, *arguments: object, prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    source = str(Path(disk.__file__).parents[2])
    return subprocess.run(
        [*prefix, sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        timeout=60,
    )


LIMITED = """
import resource, sys
import numpy as np, pyarrow as pa
from midstream.model.errors import SinkError
from midstream.storage.files import FileStore
store = FileStore(sys.argv[1])
rows = pa.record_batch({"k": np.arange(100_000)})
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    store.put("A/1-x", rows)
except SinkError as error:
    print(error)
print(store.put("A/1-small", rows.slice(0, 3))[0])
"""


def test_a_limit_on_the_size_of_files(tmp_path: Path) -> None:
    done = in_another_process(LIMITED, tmp_path)
    assert done.stderr == ""
    message, name = done.stdout.splitlines()
    assert "cannot write: File too large" in message
    assert "Remedy: raise the limit on the size of files" in message
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")] == [f"{name}.arrow"]


FULL = """
import os, subprocess, sys
import numpy as np, pyarrow as pa
from midstream.model.errors import SinkError
from midstream.model.manifest import ChunkRef
from midstream.storage.files import FileStore
root = sys.argv[1]
if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", root]).returncode:
    sys.exit("cannot mount")
store = FileStore(root)
small, large = (pa.record_batch({"k": np.arange(rows)}) for rows in (10, 100_000))
name, size, checksum = store.put("A/1-x", small)
try:
    store.put("A/2-x", large)
except SinkError as error:
    print(error)
print(store.get(ChunkRef(name, 10, size, checksum)).equals(small))
print(store.put("A/3-x", small)[0].startswith("A/3-x"), len(os.listdir(root + "/A")))
"""


def test_a_full_disk(tmp_path: Path) -> None:
    try:
        done = in_another_process(FULL, tmp_path, prefix=("unshare", "--mount"))
    except OSError as error:
        pytest.skip(f"needs a small disk of its own: {error}")
    if done.returncode:
        pytest.skip(f"needs a small disk of its own: {done.stderr}")
    message, *rest = done.stdout.splitlines()
    assert "cannot write: No space left on device" in message
    assert "Remedy: free some space" in message
    assert rest == ["True", "True 2"]


def test_a_write_that_breaks_off_leaves_nothing(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, "A/1-x", batch())
    writes = iter([10, OSError(28, "No space left on device")])

    def write(handle: int, data: memoryview) -> int:
        outcome = next(writes)
        if isinstance(outcome, OSError):
            raise outcome
        return os.pwrite(handle, data[:outcome], 0)

    monkeypatch.setattr(disk.os, "write", write)
    with pytest.raises(SinkError, match="No space left"):
        store.put("A/2-x", batch())
    monkeypatch.undo()
    assert [path.name[:3] for path in (store.root / "A").iterdir()] == ["1-x"]


@pytest.mark.parametrize(("rows", "most"), [(1000, 100), (200_000, 100_000)])
def test_short_writes_are_continued(store: FileStore, monkeypatch: pytest.MonkeyPatch, rows: int, most: int) -> None:
    whole = os.write
    monkeypatch.setattr(disk.os, "write", lambda handle, data: whole(handle, data[:most]))
    ref = put(store, "A/1-x", batch(rows))
    monkeypatch.undo()
    assert store.get(ref).equals(batch(rows))


def test_a_large_chunk_is_written_from_the_memory_of_its_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, written, whole = batch(200_000), list[np.ndarray](), os.write

    def write(handle: int, data: memoryview) -> int:
        written.append(np.frombuffer(data, np.uint8))
        return whole(handle, data)

    monkeypatch.setattr(disk.os, "write", write)
    FileStore(tmp_path).put("A/1-x", rows)
    values = np.frombuffer(rows.column(0).buffers()[1], np.uint8)
    assert any(np.shares_memory(values, piece) for piece in written)


@linux_only
def test_durable_is_for_the_file_and_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(disk.os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    FileStore(tmp_path).put("A/1-x", batch())
    assert synced == []
    FileStore(LocalStorage(tmp_path, durable=True)).put("A/1-x", batch())
    assert [Path(path).suffix for path in synced] == [".tmp", ""]
    assert synced[1] == str(tmp_path / "A")


@linux_only
def test_durable_is_for_the_names_of_new_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a file whose bytes are safe may be in a folder that nobody finds after the loss of power."""
    synced: list[str] = []
    monkeypatch.setattr(disk.os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    storage = LocalStorage(tmp_path / "a", durable=True)
    storage.write("b/c/x", b"1")
    assert {str(tmp_path / folder) for folder in ("", "a", "a/b", "a/b/c")} <= set(synced)
    for change in (lambda: storage.create("d/x", b"1"), lambda: storage.move("d/x", "e/x")):
        synced.clear()
        change()
        assert str(tmp_path / "a") in synced
    synced.clear()
    storage.write("b/c/y", b"1")
    assert str(tmp_path / "a/b") not in synced, "it is not new"


@linux_only
def test_a_folder_that_is_made_ready_and_files_that_are_linked_are_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    LocalStorage(tmp_path / "a").write("A/x", b"1")
    synced: list[str] = []
    monkeypatch.setattr(disk.os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    target = LocalStorage(tmp_path / "b" / "c", durable=True)
    target.prepare()
    assert {str(tmp_path), str(tmp_path / "b")} <= set(synced)
    synced.clear()
    copied(LocalStorage(tmp_path / "a"), target, ["A/x"])
    assert os.stat(target.path("A/x")).st_nlink == 2
    assert synced.count(str(tmp_path / "b" / "c")) == 1 and synced[-1] == target.path("A")
    assert target.path("A/x") in synced or str(tmp_path / "a" / "A" / "x") in synced


KILLED = """
import itertools, sys
import numpy as np, pyarrow as pa
from midstream.storage.files import FileStore
store = FileStore(sys.argv[1])
rows = pa.record_batch({"k": np.arange(200_000)})
print("ready", flush=True)
for step in itertools.count():
    store.put(f"A/{step}-x", rows)
"""


def test_a_killed_writer_leaves_whole_chunks_only(tmp_path: Path) -> None:
    source = str(Path(disk.__file__).parents[2])
    writer = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": source},
        stdout=subprocess.PIPE,
    )
    assert writer.stdout is not None
    with writer.stdout as out:
        out.readline()
        while len(list(tmp_path.glob("A/*.arrow"))) < 20:
            assert writer.poll() is None
        writer.kill()
        writer.wait()
    files = list(tmp_path.glob("A/*.arrow"))
    assert len(files) >= 20
    for path in files:
        assert zlib.crc32(path.read_bytes()) == int(path.stem[-8:], 16)
