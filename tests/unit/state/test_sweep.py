from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from midstream.model.errors import CheckpointError, SinkError
from midstream.model.ids import LaneId, StateId
from midstream.model.manifest import ChunkRef, LaneState, Manifest, StateListing, StaticTable
from midstream.model.schema import TableSchema
from midstream.storage import local
from midstream.storage import sweep as sweep_module
from midstream.storage.files import FileStore
from midstream.storage.sweep import TABLES, Sweeper, Swept, listed, sweep


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "chunks")


def put(store: FileStore, name: str, value: int = 1) -> ChunkRef:
    final, size, checksum = store.put(name, pa.record_batch({"k": [value]}))
    return ChunkRef(final, 1, size, checksum)


def manifest(step: int, *lanes: Iterable[ChunkRef]) -> Manifest:
    states = {
        LaneId("single", lane): LaneState({StateId("A", "0", "rows"): StateListing(tuple(chunks))})
        for lane, chunks in enumerate(lanes)
    }
    return Manifest(step=step, lane_states=states)


def files(store: FileStore) -> list[str]:
    return sorted(path.relative_to(store.root).as_posix() for path in store.root.rglob("*") if path.is_file())


def test_listed() -> None:
    chunks = [ChunkRef(name, 1, 1, 1) for name in ("a/1-x", "a/1-y", "b/1-x")]
    assert list(listed(manifest(1, chunks[:2], chunks[2:]))) == ["a/1-x", "a/1-y", "b/1-x"]


def test_only_what_no_kept_manifest_lists_goes(store: FileStore) -> None:
    one, two, three = (put(store, f"A.lane0/{step}-base", step) for step in (1, 2, 3))
    other = put(store, "B.lane1/3-base")
    gone = put(store, "A.lane0/2-other", 9)
    swept = sweep(store.root, [manifest(2, [one, two]), manifest(3, [two, three], [other])])
    assert swept == Swept(1, gone.bytes)
    assert files(store) == sorted(f"{ref.name}.arrow" for ref in (one, two, three, other))
    swept = sweep(store.root, [manifest(3, [two, three], [other])])
    assert swept == Swept(1, one.bytes)
    for ref in (two, three, other):
        store.get(ref)
    assert sweep(store.root, [manifest(3, [two, three], [other])]) == Swept()


def test_chunks_of_the_running_step_stay(store: FileStore) -> None:
    put(store, "A/3-x")
    running = put(store, "A/4-x")
    (store.root / "A" / ".4-y-0.arrow.ab-1-2.tmp").write_text("being written")
    (store.root / "A" / ".3-y-0.arrow.ab-1-2.tmp").write_text("broken off")
    assert sweep(store.root, [manifest(2), manifest(3)]).files == 2
    assert files(store) == ["A/.4-y-0.arrow.ab-1-2.tmp", f"{running.name}.arrow"]
    assert sweep(store.root, [manifest(4, [running])]).files == 1
    assert files(store) == [f"{running.name}.arrow"]


def test_steps_are_compared_as_numbers(store: FileStore) -> None:
    put(store, "A/9-x")
    put(store, "A/000000000008-x")
    later = put(store, "A/100-x")
    sweep(store.root, [manifest(20)])
    assert files(store) == [f"{later.name}.arrow"]


def test_without_a_manifest_nothing_goes(store: FileStore) -> None:
    put(store, "A/1-x")
    assert sweep(store.root, []) == Swept()
    assert len(files(store)) == 1


def test_no_store_yet(tmp_path: Path) -> None:
    assert sweep(tmp_path / "nowhere", [manifest(1)]) == Swept()


def test_files_that_are_not_chunks_stay(store: FileStore) -> None:
    put(store, "A/1-x")
    for name in ("README", "1-notes.txt", "A/x-1.arrow", "A/.keep"):
        (store.root / name).write_text("the user's own")
    sweep(store.root, [manifest(9)])
    assert files(store) == ["1-notes.txt", "A/.keep", "A/x-1.arrow", "README"]


def test_chunks_of_tables_go_unless_commands_may_bring_them(store: FileStore) -> None:
    former, other, newest = (put(store, f"{TABLES}/t/{step}-x", step) for step in (1, 2, 9))
    kept = [Manifest(step=9, tables={"t": StaticTable(TableSchema("t", pa.schema([("k", pa.int64())])), newest, "x")})]
    assert sweep(store.root, kept) == sweep(store.root, kept, lambda: None) == Swept()
    assert sweep(store.root, kept, lambda: {other.name}) == Swept(1, former.bytes)
    assert sweep(store.root, kept, set).files == 1
    assert files(store) == [f"{newest.name}.arrow"]


def test_a_sweeper_spares_what_is_brought_and_takes_it_later(store: FileStore) -> None:
    first, second = (put(store, f"{TABLES}/t/{step}-x", step) for step in (1, 2))
    schema = TableSchema("t", pa.schema([("k", pa.int64())]))
    before, after = (
        Manifest(step=step, tables={"t": StaticTable(schema, chunk, "x")}) for step, chunk in ((1, first), (2, second))
    )
    sweeper, brought = Sweeper(store.storage), iter([None, {first.name}, set[str]()])
    left = []
    for manifests in ([before], [before, after], [after], [after], [after]):
        sweeper.sweep(manifests, lambda: next(brought))
        left.append(len(files(store)))
    assert left == [2, 2, 2, 2, 1] and files(store) == [f"{second.name}.arrow"]


def test_empty_folders_go_and_come_back(store: FileStore) -> None:
    put(store, "A/deep/1-x")
    kept = put(store, "B/1-x")
    sweep(store.root, [manifest(1, [kept])])
    assert [path.name for path in store.root.iterdir()] == ["B"]
    put(store, "A/deep/2-x")
    sweep(store.root, [manifest(2)])
    assert list(store.root.iterdir()) == []
    assert store.root.exists()


def test_swept_chunks_are_not_read_from_the_cache(store: FileStore) -> None:
    ref = put(store, "A/1-x", 77)
    keys = store.get(ref).column("k").to_numpy()
    sweep(store.root, [manifest(1)])
    with pytest.raises(CheckpointError, match="is missing"):
        store.get(ref)
    assert keys[0] == 77


def test_links_to_folders_are_not_followed(store: FileStore, tmp_path: Path) -> None:
    outside = FileStore(tmp_path / "outside")
    put(outside, "1-x")
    store.root.mkdir()
    (store.root / "link").symlink_to(outside.root)
    sweep(store.root, [manifest(5)])
    assert len(files(outside)) == 1


def test_a_file_that_cannot_be_deleted(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, "A/1-x")

    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(sweep_module.os, "unlink", refuse)
    with pytest.raises(SinkError, match=r"Permission denied.*Remedy"):
        sweep(store.root, [manifest(5)])


def test_a_file_that_another_sweep_deleted(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, "A/1-x")

    def gone(path: str) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(local.os, "unlink", gone)
    assert sweep(store.root, [manifest(5)]).files == 1
