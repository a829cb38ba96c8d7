"""Chunks in files: what comes back, under what names, and how they are opened and shared."""

import datetime
import decimal
import os
import pickle
import threading
import zlib
from pathlib import Path

import pyarrow as pa
import pytest

from midstream.model.errors import CheckpointError
from midstream.model.frozen import kept_with
from midstream.model.manifest import ChunkRef
from midstream.storage import files as store_files
from midstream.storage.files import FileStore
from tests.unit.state.chunk_files import batch, file_of, forget_everything, linux_only, put


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


def test_a_pickled_store_leaves_out_what_was_drawn_of_its_chunks(store: FileStore) -> None:
    """Tasks of Spark get a store with every step; samples of a review would be megabytes."""
    put(store, "A/1-x", batch())
    size = len(pickle.dumps(store))
    kept_with(store, "_samples", lambda _: bytes(1_000_000))
    assert len(pickle.dumps(store)) == size


def test_a_store_of_a_relative_folder_stays_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = FileStore("chunks")
    monkeypatch.chdir("/")
    assert file_of(store, put(store, "A/1-x", batch())).is_relative_to(tmp_path)


def test_opened_chunks_are_shared_by_all_stores_of_a_folder(store: FileStore) -> None:
    ref = put(store, "A/1-x", batch())
    assert FileStore(store.root).get(ref) is FileStore(store.root).get(ref)


def test_a_chunk_is_checked_once(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    ref = put(store, "A/1-x", batch())
    checked: list[int] = []

    def counting(data: pa.Buffer) -> int:
        checked.append(data.size)
        return zlib.crc32(data)

    monkeypatch.setattr(store_files, "crc32", counting)
    store.get(ref)
    store_files._opened()._forget(str(file_of(store, ref)))
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
    monkeypatch.setattr(store_files._opened(), "chunks_kept", 5)
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
