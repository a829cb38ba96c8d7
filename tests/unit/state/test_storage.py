"""The contract of `Storage`: a folder and a part of a bucket alike; and what a bucket alone has."""

from __future__ import annotations

import os
import pickle
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from midstream.model.errors import CheckpointError, SinkError
from midstream.state.chunk_store import store_chunk
from midstream.storage import objects
from midstream.storage.chunk_cache import FOLDER, LIMIT, ChunkCache
from midstream.storage.files import FileStore
from midstream.storage.objects import ObjectStorage
from midstream.storage.places import WORK, located, storage_at, work_folder
from midstream.storage.process_resources import RESOURCES
from midstream.storage.storage_contract import Storage
from tests.object_server import BUCKET, CREDENTIALS, ObjectServer, Trouble


@pytest.fixture(params=["folder", "objects"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "folder":
        return storage_at(tmp_path / "root")
    return storage_at(f"{request.getfixturevalue('bucket')}/root")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ChunkCache:
    monkeypatch.setenv(FOLDER, str(tmp_path / "cache"))
    RESOURCES.close()
    return ChunkCache.here()


def text(storage: Storage, name: str) -> str:
    return storage.read(name).to_pybytes().decode()


def everything(storage: Storage) -> dict[str, str]:
    return {name: text(storage, name) for name, _ in storage.walk()}


def test_a_file_holds_what_was_written_last(storage: Storage) -> None:
    storage.write("a/b/1", b"one")
    storage.write("a/b/1", pa.py_buffer(b"two"))
    assert text(storage, "a/b/1") == text(storage.at("a").at("b"), "1") == "two"
    assert text(storage_at(storage.url), "a/b/1") == "two"
    storage.write("empty", b"")
    assert text(storage, "empty") == ""


def test_files_and_when_they_were_changed(storage: Storage) -> None:
    """Folders are none of them."""
    assert storage.changed() == storage.changed("a") == []
    for name in ("a/1", "a/b/2", "3"):
        storage.write(name, b"x")
    assert [name for _, name in storage.changed()] == ["3"]
    ((before, name),) = storage.changed("a")
    assert name == "1"
    assert abs(before / 1e9 - time.time()) < 3600
    assert storage.changed("a/1") == []


def test_a_file_that_is_not_there(storage: Storage) -> None:
    for look in (storage.read, storage.mapped):
        with pytest.raises(FileNotFoundError):
            look("a/none")
    assert not storage.exists("a/none")
    assert storage.names("a") == storage.names() == list(storage.walk()) == []
    storage.remove(["a/none", "b/none"])
    storage.remove_folder("a")
    with pytest.raises(FileNotFoundError):
        storage.move("a/none", "b/none")
    assert list(storage.walk()) == []


def test_of_many_who_create_a_file_one_does(storage: Storage) -> None:
    with ThreadPoolExecutor(8) as threads:
        created = list(threads.map(lambda number: storage.create("claim", b"%d" % number), range(8)))
    assert sum(created) == 1
    assert text(storage, "claim") == str(created.index(True))


def test_names_are_those_right_in_a_folder(storage: Storage) -> None:
    for name in ("1", "a/2", "a/b/3", "ab/4"):
        storage.write(name, name.encode())
    assert sorted(storage.names()) == ["1", "a", "ab"]
    assert sorted(storage.names("a")) == sorted(storage.at("a").names()) == ["2", "b"]
    assert sorted(storage.walk()) == [("1", 1), ("a/2", 3), ("a/b/3", 5), ("ab/4", 4)]
    assert sorted(storage.walk("a")) == [("a/2", 3), ("a/b/3", 5)]
    assert sorted(storage.at("a").walk()) == [("2", 3), ("b/3", 5)]


def test_names_after_another(storage: Storage) -> None:
    for number in range(5):
        storage.write(f"log/{number}.json", b"")
    storage.write("other", b"")
    assert sorted(storage.names_after("log", "2.json")) == ["3.json", "4.json"]
    assert sorted(storage.at("log").names_after("", "3")) == ["3.json", "4.json"]
    assert storage.names_after("log", "9") == []


@pytest.mark.parametrize("name", ["x~y~z.parquet", "a b", "p%20q", "epoch=000001", "ü", "#h", "q?x", "a+b", "(c)"])
def test_every_name_that_a_checkpoint_has(storage: Storage, name: str) -> None:
    storage.write(f"{name}/{name}", b"1")
    assert storage.names() == storage.names(name) == [name]
    storage.move(f"{name}/{name}", f"moved/{name}")
    assert everything(storage) == {f"moved/{name}": "1"}
    storage.remove([f"moved/{name}"])
    assert everything(storage) == {}


def test_moving_files_and_folders(storage: Storage) -> None:
    for number in range(3):
        storage.write(f"from/{number}", b"%d" % number)
    storage.write("to/0", b"old")
    storage.move("from/0", "to/0")
    assert everything(storage) == {"from/1": "1", "from/2": "2", "to/0": "0"}
    assert not storage.move_folder("from", "to")
    assert storage.move_folder("from", "new")
    assert everything(storage) == {"new/1": "1", "new/2": "2", "to/0": "0"}
    storage.copy_all({"new/1": "to/1", "new/2": "to/2"})
    assert everything(storage) == {"new/1": "1", "new/2": "2", "to/0": "0", "to/1": "1", "to/2": "2"}
    storage.remove_folder("new")
    assert everything(storage) == {"to/0": "0", "to/1": "1", "to/2": "2"}
    with pytest.raises(FileNotFoundError):
        storage.copy_all({"to/0": "other/0", "to/none": "other/none"})
    storage.remove_folder("other")
    storage.remove_folder("to")
    assert everything(storage) == {}


def test_a_storage_is_pickled_without_a_secret(storage: Storage) -> None:
    storage.write("a", b"1")
    pickled = pickle.dumps(storage)
    assert CREDENTIALS["AWS_SECRET_ACCESS_KEY"].encode() not in pickled
    assert pickle.loads(pickled) == storage
    assert text(pickle.loads(pickled), "a") == "1"


def test_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert located("a/../b") == located(f"file://{tmp_path}/b") == located("file:b") == str(tmp_path / "b")
    assert located("s3://bucket//a/b/") == located("S3://bucket/a/b") == "s3://bucket/a/b"
    for url in ("gs://b", "abfs://container@account.dfs.core.windows.net/a", "abfss://c@a/b", "az://b/c"):
        assert located(url) == url
        assert isinstance(storage_at(url), ObjectStorage)
    with pytest.raises(SinkError, match=r"midstream cannot keep files on hdfs://.*s3://"):
        located("hdfs://name/a")


@pytest.mark.parametrize("url", ["https://key:secret@host/b", "https://host/b?secret=1", "https://host/b#secret"])
def test_a_secret_is_not_shown_where_the_scheme_is_unknown(url: str) -> None:
    with pytest.raises(SinkError, match="midstream cannot keep files on https://") as caught:
        storage_at(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["s3://key:secret@bucket/a", "s3://bucket/a?secret=1", "s3://", "s3://bucket/#secret"])
def test_a_url_with_a_secret_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(SinkError, match="environment") as caught:
        storage_at(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("trouble", "said", "remedy"),
    [
        (Trouble(403, "ExpiredToken"), "says 403 Forbidden ExpiredToken", "credentials"),
        (Trouble(403, "AccessDenied"), "says 403 Forbidden AccessDenied", "credentials"),
        (Trouble(503, "SlowDown"), "says 503 Service Unavailable SlowDown", "can be reached"),
        (Trouble(404, "NoSuchBucket"), "NoSuchBucket", "make the bucket"),
    ],
)
def test_what_a_store_refuses_says_what_and_where(
    object_server: ObjectServer, bucket: str, monkeypatch: pytest.MonkeyPatch, trouble: Trouble, said: str, remedy: str
) -> None:
    monkeypatch.setenv(objects.PATIENCE, "0")
    RESOURCES.close()
    storage = storage_at(bucket)
    storage.write("a", b"1")
    calls = {
        "write": lambda: storage.write("a", b"2"),
        "create": lambda: storage.create("b", b"2"),
        "move": lambda: storage.move("a", "c"),
        "read": lambda: storage.read("a"),
        "names": lambda: storage.names("a"),
    }
    with object_server.in_trouble(trouble):
        for name, call in calls.items():
            with pytest.raises(CheckpointError if name in ("read", "names") else SinkError, match=said) as caught:
                call()
            assert caught.value.place.startswith(bucket)
            assert remedy in caught.value.remedy
            shown = "".join(traceback.format_exception(caught.value))
            assert "http://" not in shown, "the request may hold a signature"
    assert everything(storage) == {"a": "1"}, "what failed has changed nothing"


def test_a_server_that_is_gone_for_a_moment_is_not_noticed(object_server: ObjectServer, bucket: str) -> None:
    storage = storage_at(bucket)
    for trouble in (Trouble(503, times=2), Trouble(500, "InternalError", times=2)):
        object_server.make(trouble)
        storage.write("a", b"1")
        object_server.make(trouble)
        assert text(storage, "a") == "1"


def test_without_a_server_the_error_comes_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv(objects.PATIENCE, "1")
    RESOURCES.close()
    with pytest.raises(SinkError, match=f"does not answer .at s3://{BUCKET}/x/a"):
        storage_at(f"s3://{BUCKET}/x").write("a", b"1")
    RESOURCES.close()


def test_a_chunk_is_brought_here_once(object_server: ObjectServer, bucket: str, cache: ChunkCache) -> None:
    written = pa.record_batch({"k": [1, 2]})
    ref = store_chunk(FileStore(bucket), "A.lane0/000001-base", written)
    store_elsewhere(cache)
    object_server.requests()
    for _ in range(3):
        assert FileStore(bucket).get(ref).equals(written)
    assert [one.kind for one in object_server.requests()] == ["GET"]


def test_a_damaged_copy_is_brought_anew(bucket: str, cache: ChunkCache) -> None:
    written = pa.record_batch({"k": [1, 2]})
    ref = store_chunk(FileStore(bucket), "A.lane0/000001-base", written)
    (copy,) = Path(cache.folder).iterdir()
    data = bytearray(copy.read_bytes())
    data[len(data) // 2] ^= 1
    copy.write_bytes(data)
    assert FileStore(bucket).get(ref).equals(written)


def test_a_damaged_object_is_an_error(bucket: str, cache: ChunkCache) -> None:
    ref = store_chunk(FileStore(bucket), "A.lane0/000001-base", pa.record_batch({"k": [1, 2]}))
    store_elsewhere(cache)
    storage_at(bucket).write(f"{ref.name}.arrow", b"x" * ref.bytes)
    with pytest.raises(CheckpointError, match="checksum does not match"):
        FileStore(bucket).get(ref)


def test_the_cache_keeps_what_was_used_last(tmp_path: Path) -> None:
    cache = ChunkCache(str(tmp_path / "small"), limit=1000)
    for number in range(40):
        cache.put(f"s3://b/{number}", bytes(100))
        assert cache.get("s3://b/0") is not None, "it is used again and again"
        assert cache.size() <= 1000 + 100
    assert cache.get("s3://b/1") is None
    assert cache.get("s3://b/39") is not None
    cache.put("s3://b/large", bytes(2000))
    assert not cache.has("s3://b/large")


def test_a_cache_in_a_folder_that_cannot_be_written(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv(FOLDER, str(tmp_path / "file"))
    written = pa.record_batch({"k": [1, 2]})
    ref = store_chunk(FileStore(bucket), "A.lane0/000002-base", written)
    assert FileStore(bucket).get(ref).equals(written)
    monkeypatch.setenv(LIMIT, "much")
    with pytest.raises(SinkError, match="MIDSTREAM_CACHE_BYTES is 'much'"):
        ChunkCache.here()


def test_a_cache_of_another_user_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = ChunkCache(str(tmp_path / "theirs"), limit=1000)
    cache.put("s3://b/1", b"abc")
    assert cache.get("s3://b/1") is not None and cache.has("s3://b/1")
    monkeypatch.setattr(os, "getuid", lambda: os.stat(tmp_path).st_uid + 1)
    assert cache.get("s3://b/1") is None and not cache.has("s3://b/1")


@pytest.mark.parametrize("made", ["a link", "another user's"])
def test_a_work_folder_that_somebody_else_has_made_is_refused(
    made: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(WORK, str(tmp_path))
    storage = storage_at("s3://bucket/a")
    folder = Path(work_folder(storage))
    if made == "a link":
        folder.symlink_to(tmp_path)
    else:
        folder.mkdir()
        monkeypatch.setattr(os, "getuid", lambda: os.stat(folder).st_uid + 1)
    with pytest.raises(SinkError, match="belongs to another user, or is a link"):
        work_folder(storage)


def test_chunks_are_written_behind_and_read_ahead(object_server: ObjectServer, bucket: str, cache: ChunkCache) -> None:
    store = FileStore(bucket, epoch=1, write_behind=True)
    written = [pa.record_batch({"k": [number] * 1000}) for number in range(20)]
    refs = [store_chunk(store, f"A.lane0/{number:06d}-base", batch) for number, batch in enumerate(written)]
    assert pickle.loads(pickle.dumps(store)).get(refs[0]).equals(written[0])
    store.finish()
    assert len(list(storage_at(bucket).walk())) == 20
    store_elsewhere(cache)
    object_server.requests()
    reader = FileStore(bucket)
    reader.read_ahead(refs)
    assert [reader.get(ref).equals(batch) for ref, batch in zip(refs, written, strict=True)] == [True] * 20
    assert [one.kind for one in object_server.requests()] == ["GET"] * 20
    reader.read_ahead(refs)
    assert object_server.requests() == []


def test_a_write_behind_that_fails_is_told(
    object_server: ObjectServer, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(objects.PATIENCE, "0")
    RESOURCES.close()
    store = FileStore(bucket, write_behind=True)
    with object_server.in_trouble(Trouble(403, "AccessDenied", methods=("PUT",))):
        store_chunk(store, "A.lane0/000001-base", pa.record_batch({"k": [1]}))
        with pytest.raises(SinkError, match="AccessDenied"):
            store.finish()
    store.finish()


def store_elsewhere(cache: ChunkCache) -> None:
    """As if this were another machine: nothing is kept here."""
    for path in Path(cache.folder).iterdir():
        path.unlink()
    from midstream.storage import files

    files._opened()._batches.clear()
    files._opened()._verified.clear()
