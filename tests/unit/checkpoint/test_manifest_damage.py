"""Manifests that are damaged or of another format version: what is said, and what still works."""

import pytest

from midstream.checkpoint import manifest_file
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.model import manifest as manifest_model
from midstream.model.codec import encode
from midstream.model.errors import CheckpointError
from midstream.state.store import disk
from tests.unit.checkpoint.manifests import file_of, full, go_on, plain, publish, small

OURS = f"this midstream reads version {manifest_model.FORMAT_VERSION}"


def test_any_flipped_byte_is_found(log: ManifestLog) -> None:
    publish(log, 0, 1)
    path = file_of(log, 1)
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x02]) + whole[at + 1 :])
        with pytest.raises(CheckpointError) as caught:
            log.latest()
        assert caught.value.place == str(path)
        assert caught.value.remedy
    path.write_bytes(whole)
    assert log.latest() == small(1)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]\n",
        b"\xff\xfe",
        b'{"format":%d}\n' % manifest_model.FORMAT_VERSION,
        disk.seal(5),
        disk.seal({"format": 2}),
    ],
)
def test_a_damaged_newest_manifest_names_the_way_out(log: ManifestLog, content: bytes) -> None:
    publish(log, *range(4))
    file_of(log, 3).write_bytes(content)
    file_of(log, 2).write_bytes(b"damaged too")
    with pytest.raises(CheckpointError) as caught:
        log.latest()
    assert caught.value.place == str(file_of(log, 3))
    assert "go back to step 1 " in caught.value.remedy
    assert log.read(1) == small(1)
    assert f"midstream rewind {log.root.parent} 1" in caught.value.remedy
    log.rewind(1)
    assert plain(log.latest()) == small(1)


def test_no_way_out(log: ManifestLog) -> None:
    publish(log, 0)
    file_of(log, 0).write_bytes(b"")
    with pytest.raises(CheckpointError, match="no older step is whole"):
        log.latest()


def test_a_damaged_older_manifest_stops_only_the_sweep(log: ManifestLog) -> None:
    publish(log, 0, 1, 2)
    file_of(log, 1).write_bytes(b"")
    assert log.latest() == small(2)
    with pytest.raises(CheckpointError, match="go back to step 0"):
        log.kept()
    with pytest.raises(CheckpointError, match="go back to step 0"):
        log.rewind(1)
    assert log.epochs.newest() is None
    publish(log, 3)
    assert log.steps() == (0, 1, 2, 3)


def test_a_damaged_turn(log: ManifestLog) -> None:
    publish(log, 0, 1)
    (log.root / "turn.json").write_bytes(b"")
    with pytest.raises(CheckpointError, match="remove it: the job is then where it was"):
        log.latest()
    (log.root / "turn.json").unlink()
    assert log.latest() == small(1)


def test_format_3_which_knew_no_epochs(log: ManifestLog, monkeypatch: pytest.MonkeyPatch) -> None:
    value = {"format": 3, **encode(full(4))}
    del value["epochs"]
    log.root.mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(disk, "FORMAT_VERSION", 3)
        file_of(log, 4).write_bytes(disk.seal(value))
    assert log.latest() == full(4)
    go_on(log, 5)
    assert [manifest.step for manifest in log.kept()] == [4, 5]


def test_another_format_version(log: ManifestLog, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(log, 0)
    monkeypatch.setattr(disk, "FORMAT_VERSION", 99)
    monkeypatch.setattr(manifest_file, "FORMAT_VERSION", 99)
    publish(log, 1)
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match=f"format version 99, {OURS}.*use the version"):
        log.latest()


def test_another_format_version_inside(log: ManifestLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_file, "FORMAT_VERSION", 99)
    publish(log, 0)
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match=f"format version 99, {OURS}"):
        log.latest()
