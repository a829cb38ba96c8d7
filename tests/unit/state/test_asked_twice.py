"""A file that is to be created once, on a storage that carries a request out twice because its answer was lost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from midstream.storage import local, objects
from midstream.storage.local import LocalStorage
from midstream.storage.objects import ObjectStorage


def test_a_folder_mounted_over_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def twice(source: str, target: str) -> None:
        link(source, target)
        link(source, target)

    storage = LocalStorage(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(local.os, "link", twice)
        assert storage.create("claim", b"mine"), "it is there, and it is its own"
    assert not storage.create("claim", b"mine")
    assert storage.names() == os.listdir(tmp_path) == ["claim"]


def test_an_object_store(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Library:
        """The library, whose requests to put something are made twice."""

        def __getattr__(self, name: str) -> Any:
            return getattr(library, name)

        def put(self, *arguments: Any, **options: Any) -> None:
            library.put(*arguments, **options)
            library.put(*arguments, **options)

    library, storage = objects._library(), ObjectStorage(bucket)
    with monkeypatch.context() as patched:
        patched.setattr(objects, "_library", Library)
        assert storage.create("claim", b"mine"), "it is there, and it is its own"
    assert not storage.create("claim", b"mine")
