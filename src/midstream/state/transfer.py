"""Files that never change, put under another root as well."""

from __future__ import annotations

import os
from collections.abc import Iterable

from midstream.model.errors import CheckpointError
from midstream.state.store.local import LocalStorage
from midstream.state.store.storage import Storage


def copied(source: Storage, target: Storage, names: Iterable[str]) -> None:
    """Have the files under the same names in `target`: as hard links where both are folders of one file system."""
    for name in names:
        if isinstance(source, LocalStorage) and isinstance(target, LocalStorage) and _linked(source, target, name):
            continue
        try:
            target.write(name, source.read(name))
        except FileNotFoundError as error:
            remedy = "name a step whose chunks are whole: midstream doctor says which"
            raise CheckpointError("a chunk is missing", place=source.place(name), remedy=remedy) from error


def _linked(source: LocalStorage, target: LocalStorage, name: str) -> bool:
    try:
        os.makedirs(os.path.dirname(target.path(name)), exist_ok=True)
        os.link(source.path(name), target.path(name))
    except OSError:
        return False
    return True
