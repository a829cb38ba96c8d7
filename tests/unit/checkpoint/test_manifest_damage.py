"""Manifests that are damaged or of another format: what is said, and what still works."""

import json

import pytest

from midstream.checkpoint.manifest_log import ManifestLog
from midstream.model.codec import encode
from midstream.model.errors import CheckpointError, OtherFormatError
from midstream.storage import disk
from tests.unit.checkpoint.manifests import file_of, full, plain, publish, small


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
        b'{"midstream":"0.2.0","format":1}\n',
        disk.seal(5),
        disk.seal({"job": ""}),
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


def test_another_format(log: ManifestLog) -> None:
    publish(log, 0, 1)
    newest = file_of(log, 1)
    newest.write_text(newest.read_text().replace('"0.2.0","format":1', '"0.3.1","format":2'))
    with pytest.raises(OtherFormatError, match=r"format 2 of midstream 0\.3\.1, but .*Remedy: use midstream 0\.3\.1"):
        log.latest()


@pytest.mark.parametrize("number", range(1, 6))
def test_a_format_of_the_first_version(log: ManifestLog, number: int) -> None:
    publish(log, 0)
    value = json.dumps({"format": number, **encode(full(0))})
    file_of(log, 0).write_text(f'{{"format":{number},"crc32":"00000000","value":{value}}}\n')
    with pytest.raises(OtherFormatError, match=rf"format {number} of midstream 0\.1\.0, but .*: use midstream 0\.1"):
        log.latest()
