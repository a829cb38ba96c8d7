import datetime
import decimal
import os
import pickle
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from midstream.model.errors import CheckpointError, SinkError
from midstream.model.manifest import FORMAT_VERSION, ChunkRef
from midstream.state.store import disk
from midstream.state.store import files as store_files
from midstream.state.store.files import FileStore
from midstream.state.store.local import LocalStorage

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
    opened = store_files._OPENED
    for path in [*opened._batches, *opened._verified]:
        opened.drop(path)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FileStore]:
    yield FileStore(tmp_path / "chunks")
    forget_everything()


def everything() -> pa.RecordBatch:
    day = datetime.date(2013, 2, 28)
    moment = datetime.datetime(2013, 2, 28, 12, tzinfo=datetime.UTC)
    return pa.record_batch(
        {
            "integers": pa.array([1, None, -(2**63)]),
            "doubles": pa.array([float("inf"), -0.0, None]),
            "texts": pa.array(["", "naïve 漢字 🛫", None]),
            "long": pa.array(["x" * 1_000_000, "y", None], pa.large_string()),
            "binary": pa.array([b"\0\xff", None, b""]),
            "decimals": pa.array([decimal.Decimal("1.10"), None, decimal.Decimal("-9.99")], pa.decimal128(38, 2)),
            "dates": pa.array([day, None, day]),
            "times": pa.array([moment, None, moment], pa.timestamp("us", "UTC")),
            "truths": pa.array([True, None, False]),
            "nothing": pa.nulls(3),
            "lists": pa.array([[1, 2], None, []]),
            "structs": pa.array([{"a": 1, "b": ["x"]}, None, {"a": None, "b": None}]),
            "maps": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
            "dictionary": pa.array(["u", None, "u"]).dictionary_encode(),
            "views": pa.array(["short", None, "longer than twelve bytes"], pa.string_view()),
        }
    )


@pytest.mark.parametrize(
    "rows",
    [
        batch(),
        batch(0),
        batch(100).slice(17, 5),
        everything(),
        everything().slice(1),
        everything().slice(0, 0),
        batch().replace_schema_metadata({"by": "me"}),
        pa.record_batch({"naïve": [1], "": [2]}),
        pa.record_batch([pa.array([1]), pa.array([2])], names=["twice", "twice"]),
    ],
    ids=[
        "plain",
        "empty",
        "slice",
        "all types",
        "slice of all types",
        "none of all types",
        "metadata",
        "names",
        "twice",
    ],
)
def test_what_comes_back_is_what_was_put(store: FileStore, rows: pa.RecordBatch) -> None:
    got = store.get(put(store, "A.lane0/000012-base", rows))
    got.validate(full=True)
    assert got.equals(rows, check_metadata=True)
    assert got.schema.equals(rows.schema, check_metadata=True)


def test_a_slice_is_stored_without_the_rest(store: FileStore) -> None:
    assert put(store, "A/1-x", batch(100_000).slice(5, 10)).bytes < 5_000


def test_the_checksum_is_that_of_the_file_and_part_of_the_name(store: FileStore) -> None:
    ref = put(store, "A.lane0/000012-base", batch())
    data = file_of(store, ref).read_bytes()
    assert (len(data), zlib.crc32(data)) == (ref.bytes, ref.checksum)
    assert ref.name == f"A.lane0/000012-base-{ref.checksum:08x}"


def test_a_replayed_step_writes_the_same_files(store: FileStore) -> None:
    assert put(store, "A/1-x", batch()) == put(store, "A/1-x", batch())
    assert len(list(store.root.rglob("*.*"))) == 1


def test_other_content_gets_another_name(store: FileStore) -> None:
    one, two = put(store, "A/1-x", batch(seed=1)), put(store, "A/1-x", batch(seed=2))
    assert store.get(one).equals(batch(seed=1))
    assert store.get(two).equals(batch(seed=2))


@pytest.mark.parametrize(
    ("name", "kept_as"),
    [
        ("7-x", "7-x"),
        ("a/b/000007-x+y.z=1~2", "a/b/000007-x+y.z=1~2"),
        ("../../7-x", "_./_./7-x"),
        (".hidden/7-x/../y", "_hidden/7-x_.._y"),
        ("//7-a b\0c\n漢", "7-a_b_c__"),
        ("0/7-" + "x" * 300, "0/7-" + "x" * 98),
    ],
)
def test_names_are_made_fit_for_files(store: FileStore, name: str, kept_as: str) -> None:
    ref = put(store, name, batch())
    assert ref.name == f"{kept_as}-{ref.checksum:08x}"
    assert file_of(store, ref).resolve().is_relative_to(store.root.resolve())
    assert store.get(ref).equals(batch())


def test_a_name_without_a_step_is_a_mistake(store: FileStore) -> None:
    with pytest.raises(ValueError, match="number of its step"):
        store.put("A/base", batch())


@pytest.mark.parametrize("name", ["../1-x", "/etc/1-x", "A/../../1-x", "1-x/../../y", "A/x", ""])
def test_a_listed_name_cannot_lead_out_of_the_folder(store: FileStore, name: str) -> None:
    with pytest.raises(CheckpointError, match="cannot be the name of a chunk"):
        store.get(ChunkRef(name, 1, 1, 1))
    with pytest.raises(CheckpointError, match="cannot be the name of a chunk"):
        store.remove([name])


@linux_only
def test_reads_copy_nothing(store: FileStore) -> None:
    ref = put(store, "A/1-x", batch(500_000))
    before = pa.total_allocated_bytes()
    keys = store.get(ref).column("k").to_numpy(zero_copy_only=True)
    assert pa.total_allocated_bytes() - before < 100_000
    assert not keys.flags.writeable
    address = keys.__array_interface__["data"][0]
    assert address % 8 == 0
    mapped = [line for line in Path("/proc/self/maps").read_text().splitlines() if line.endswith(f"{ref.name}.arrow")]
    bounds = [tuple(int(end, 16) for end in line.split()[0].split("-")) for line in mapped]
    assert any(low <= address < address + keys.nbytes <= high for low, high in bounds)


def test_views_outlive_the_store_the_cache_and_the_file(store: FileStore) -> None:
    ref = put(store, "A/1-x", batch(50_000))
    keys = store.get(ref).column("k").to_numpy()
    store.remove([ref.name])
    forget_everything()
    assert (keys == batch(50_000).column("k").to_numpy()).all()


@linux_only
def test_open_chunks_do_not_use_up_open_files(store: FileStore) -> None:
    before = len(os.listdir("/proc/self/fd"))
    opened = [store.get(put(store, f"A/{step}-x", batch(seed=step))) for step in range(50)]
    assert len(opened) == 50
    assert len(os.listdir("/proc/self/fd")) <= before + 1


def test_remove(store: FileStore) -> None:
    one, two = put(store, "A/1-x", batch(seed=1)), put(store, "A/2-x", batch(seed=2))
    store.get(one)
    store.remove([one.name, one.name])
    assert not file_of(store, one).exists()
    assert store.get(two).equals(batch(seed=2))
    with pytest.raises(CheckpointError, match="is missing"):
        store.get(one)


def test_a_pickled_store_reads_the_same_chunks(store: FileStore) -> None:
    ref = put(store, "A/1-x", batch())
    assert pickle.loads(pickle.dumps(store)).get(ref).equals(batch())


def test_a_store_of_a_relative_folder_stays_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = FileStore("chunks")
    monkeypatch.chdir("/")
    assert file_of(store, put(store, "A/1-x", batch())).is_relative_to(tmp_path)


# The cache


def test_opened_chunks_are_shared_by_all_stores_of_a_folder(store: FileStore) -> None:
    ref = put(store, "A/1-x", batch())
    assert FileStore(store.root).get(ref) is FileStore(store.root).get(ref)


def test_a_chunk_is_checked_once(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    ref = put(store, "A/1-x", batch())
    checked: list[int] = []

    class Counting:
        @staticmethod
        def crc32(data: pa.Buffer) -> int:
            checked.append(data.size)
            return zlib.crc32(data)

    monkeypatch.setattr(store_files, "zlib", Counting)
    store.get(ref)
    store_files._OPENED._forget(str(file_of(store, ref)))
    store.get(ref)
    assert checked == [ref.bytes]


def test_the_cache_is_bounded_by_bytes_and_by_chunks() -> None:
    opened = store_files._Opened(bytes_kept=250, chunks_kept=4, marks_kept=6)
    rows = batch()

    def keep(number: int, size: int) -> None:
        opened.keep(f"f{number}", ChunkRef(f"{number}-x", 3, size, number), rows)

    for number in range(3):
        keep(number, 100)
    assert [opened.find(f"f{n}", n) is rows for n in range(3)] == [False, True, True]
    opened.find("f1", 1)
    keep(3, 100)
    assert [opened.find(f"f{n}", n) is rows for n in range(4)] == [False, True, False, True]
    for number in range(4, 10):
        keep(number, 10)
    assert (len(opened._batches), opened.bytes) == (4, 40)
    assert len(opened._verified) == 6
    keep(10, 1000)
    assert (len(opened._batches), opened.bytes) == (0, 0)
    assert opened.find("f9", 8) is None


def test_threads_may_read_and_write_at_once(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_files._OPENED, "chunks_kept", 5)
    wrong: list[object] = []

    def work(seed: int) -> None:
        try:
            for step in range(40):
                ref = put(store, f"A/{step % 8}-x", batch(50, seed=step % 8))
                if not store.get(ref).equals(batch(50, seed=step % 8)):
                    wrong.append(ref)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# Damage


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
    ("rows", "version"), [(batch(), "unknown"), (batch().replace_schema_metadata({"midstream.format": "99"}), "99")]
)
def test_a_chunk_of_another_format_version(store: FileStore, rows: pa.RecordBatch, version: str) -> None:
    ref = rewritten(store, as_file(rows))
    ours = f"this midstream reads version {FORMAT_VERSION}"
    with pytest.raises(CheckpointError, match=f"format version {version}, {ours}.*Remedy"):
        store.get(ref)


@pytest.mark.parametrize(
    "data", [b"not Arrow", as_file(batch().replace_schema_metadata({"midstream.format": str(FORMAT_VERSION)}), times=0)]
)
def test_a_chunk_that_is_none(store: FileStore, data: bytes) -> None:
    ref = rewritten(store, data)
    with pytest.raises(CheckpointError, match="does not read"):
        store.get(ref)


# Where nothing can be written


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
from midstream.state.store.files import FileStore
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
from midstream.state.store.files import FileStore
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


def test_short_writes_are_continued(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.write
    monkeypatch.setattr(disk.os, "write", lambda handle, data: whole(handle, data[:100]))
    ref = put(store, "A/1-x", batch(1000))
    monkeypatch.undo()
    assert store.get(ref).equals(batch(1000))


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


KILLED = """
import itertools, sys
import numpy as np, pyarrow as pa
from midstream.state.store.files import FileStore
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
