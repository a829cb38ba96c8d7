"""What a manifest log keeps, how long, and what a reader sees of it."""

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from midstream.checkpoint.manifest_log import ManifestLog
from midstream.model.codec import encode
from midstream.model.errors import CheckpointError, SinkError
from midstream.model.manifest import FORMAT_SINCE, FORMAT_VERSION
from midstream.model.time_line import Epoch
from midstream.storage import disk
from midstream.storage.local import LocalStorage
from tests.unit.checkpoint.manifests import failing, file_of, full, publish, small


def test_nothing_yet(log: ManifestLog) -> None:
    assert log.latest() is None
    assert log.steps() == ()
    assert log.kept() == ()
    assert not log.root.exists()
    with pytest.raises(CheckpointError, match=r"step 3 is not kept.*none"):
        log.read(3)


def test_what_comes_back_is_what_was_published(log: ManifestLog) -> None:
    log.publish(full(12))
    assert log.latest() == full(12) == log.read(12) == log.kept()[0]
    assert ManifestLog(log.root).latest() == full(12)


def test_a_manifest_before_the_first_step(log: ManifestLog) -> None:
    publish(log, -1, 0)
    assert log.steps() == (-1, 0)
    assert log.read(-1).step == -1


def test_the_file_is_compact_json(log: ManifestLog) -> None:
    log.publish(full(12))
    text = file_of(log, 12).read_text()
    assert (json.loads(text)["midstream"], json.loads(text)["format"]) == (FORMAT_SINCE, FORMAT_VERSION)
    assert json.loads(text)["value"] == json.loads(json.dumps(encode(full(12))))
    assert ": " not in text
    assert '", "' not in text


def test_the_newest_few_are_kept(log: ManifestLog) -> None:
    publish(log, *range(10))
    assert log.steps() == (6, 7, 8, 9)
    assert [manifest.step for manifest in log.kept()] == [6, 7, 8, 9]
    assert sorted(path.name for path in log.root.iterdir()) == [f"{step:012d}.json" for step in (6, 7, 8, 9)]
    with pytest.raises(CheckpointError, match=r"step 2 is not kept.*choose a kept step: 6 to 9"):
        log.read(2)


def test_fewer_may_be_kept_than_before(log: ManifestLog) -> None:
    publish(log, *range(4))
    ManifestLog(log.root, keep=1).publish(small(4))
    assert log.steps() == (4,)
    with pytest.raises(CheckpointError, match=r"cannot keep 0 manifests.*Remedy"):
        ManifestLog(log.root, keep=0)


def test_an_old_manifest_goes_only_when_the_new_one_stands(log: ManifestLog, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(log, *range(4))
    monkeypatch.setattr(disk.os, "replace", failing(OSError(28, "No space left on device")))
    with pytest.raises(SinkError, match="No space left on device"):
        publish(log, 4)
    assert log.steps() == (0, 1, 2, 3)


def test_an_old_manifest_that_cannot_be_removed_does_not_fail_the_step(
    log: ManifestLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(log, *range(4))
    monkeypatch.setattr(disk.os, "unlink", failing(OSError(13, "Permission denied")))
    publish(log, 4)
    monkeypatch.undo()
    assert len(list(log.root.glob("*.json"))) == 5
    assert log.steps() == (1, 2, 3, 4), "what should be gone does not count, for its chunks may be"
    publish(log, 5)
    assert log.steps() == (2, 3, 4, 5)


def test_publishing_a_step_again_replaces_it(log: ManifestLog) -> None:
    publish(log, *range(6))
    log.publish(small(5, "replayed"))
    assert log.steps() == (2, 3, 4, 5)
    assert log.latest() == small(5, "replayed")


def test_leftovers_of_broken_writes_do_not_count(log: ManifestLog) -> None:
    publish(log, 0, 1)
    (log.root / ".000000000002.json.ab-1-2.tmp").write_text("half")
    (log.root / "notes.txt").write_text("the user's own")
    assert log.latest() == small(1)
    publish(log, 2)
    assert not list(log.root.glob(".*"))
    assert (log.root / "notes.txt").exists()


def test_steps_need_not_be_consecutive(log: ManifestLog) -> None:
    publish(log, 3, 10, 11, 900_000_000_000_000)
    assert log.steps() == (3, 10, 11, 900_000_000_000_000)


def test_kept_looks_again_at_a_file_that_changed(log: ManifestLog) -> None:
    publish(log, 0, 1)
    assert log.kept() == (small(0), small(1))
    other = ManifestLog(log.root)
    other.publish(small(1, "by another"))
    assert log.kept() == (small(0), small(1, "by another"))


def test_a_long_run_remembers_only_what_is_kept(log: ManifestLog) -> None:
    for step in range(50):
        log.publish(replace(small(step), epochs=(Epoch(1, "a", 0),)))
    assert len(log._seen) == 4


def test_a_path_under_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for root in (tmp_path / "file", tmp_path / "file" / "child"):
        log = ManifestLog(root)
        with pytest.raises((SinkError, CheckpointError), match="Remedy"):
            log.publish(small(0))
        with pytest.raises(CheckpointError, match="cannot read"):
            log.latest()


def test_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(disk.os, "fsync", synced.append)
    publish(ManifestLog(tmp_path), 0)
    assert synced == []
    log = ManifestLog(LocalStorage(tmp_path, durable=True))
    publish(log, 1)
    assert len(synced) == 2
    log.epochs.claim()
    assert len(synced) == 4


def test_readers_while_the_writer_goes_on(log: ManifestLog) -> None:
    writer_log, wrong, stop = ManifestLog(log.root, keep=1), list[object](), threading.Event()
    publish(writer_log, 0)

    def read() -> None:
        last = 0
        try:
            while not stop.is_set():
                manifest = log.latest()
                if manifest is None or manifest.step < last:
                    wrong.append((manifest, last))
                last = manifest.step if manifest else last
                log.kept()
        except Exception as error:
            wrong.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    publish(writer_log, *range(1, 300))
    stop.set()
    for reader in readers:
        reader.join()
    assert wrong == []
