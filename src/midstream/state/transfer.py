"""Files that never change, put under another root as well."""

from __future__ import annotations

import os
from collections.abc import Iterable

from midstream.model.errors import CheckpointError
from midstream.state.store.disk import make_folder, sync, sync_folder
from midstream.state.store.local import LocalStorage
from midstream.state.store.storage import Storage


def copied(source: Storage, target: Storage, names: Iterable[str]) -> None:
    """Copy the files under the same names to `target`: as hard links where both are folders of one file system.

    In a `target` that is durable they survive the loss of power afterwards, those included that were not before.
    """
    names = list(names)
    for name in names:
        if isinstance(source, LocalStorage) and isinstance(target, LocalStorage) and _linked(source, target, name):
            continue
        try:
            target.write(name, source.read(name))
        except FileNotFoundError as error:
            remedy = "name a step whose chunks are whole: midstream doctor says which"
            raise CheckpointError("a chunk is missing", place=source.place(name), remedy=remedy) from error
    if isinstance(target, LocalStorage) and target.durable:
        for folder in sorted({os.path.dirname(target.path(name)) for name in names}):
            sync_folder(folder)


def _linked(source: LocalStorage, target: LocalStorage, name: str) -> bool:
    try:
        make_folder(os.path.dirname(target.path(name)), sync_folder if target.durable else None)
        os.link(source.path(name), target.path(name))
        if target.durable:
            sync(target.path(name))
    except OSError:
        return False
    return True
