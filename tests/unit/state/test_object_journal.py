"""The object server of the tests loses nothing that it acknowledged when it is killed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from midstream.storage.objects import ObjectStorage
from midstream.storage.process_resources import RESOURCES
from tests.object_server import BUCKET, ObjectServer, free_port


def test_a_server_that_is_killed_has_everything_when_it_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ObjectServer(free_port(), journal=tmp_path / "journal")
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    RESOURCES.close()
    storage = ObjectStorage(f"s3://{BUCKET}/kept")
    server.start()
    try:
        for n in range(5):
            storage.write(f"a/{n}", b"%d" % n)
        storage.copy_all({"a/1": "b/1", "a/2": "b/2"})
        storage.write("a/3", b"three")
        storage.remove(["a/1", "a/4"])
        assert storage.create("claim", b"mine") and not storage.create("claim", b"other")
        held = state(storage)
        for _ in range(2):  # Once from what was asked, once from what was left of that.
            server.kill()
            server.start()
            assert state(storage) == held
            assert not storage.create("claim", b"another")
        assert storage._mark("claim")
    finally:
        server.kill()
        RESOURCES.close()
    assert os.path.getsize(tmp_path / "journal")


def state(storage: ObjectStorage) -> dict[str, bytes]:
    return {name: storage.read(name).to_pybytes() for name, _ in storage.walk()}
