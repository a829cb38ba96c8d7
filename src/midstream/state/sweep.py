"""Chunk files that no kept manifest lists are deleted."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from midstream.model.manifest import Manifest
from midstream.state.store.disk import cannot_write
from midstream.state.store.files import SUFFIX, forget_opened

_CHUNK = re.compile(rf"\.?(\d+)-.*(?:{re.escape(SUFFIX)}|\.tmp)")


@dataclass(frozen=True)
class Swept:
    """What a sweep deleted."""

    files: int = 0
    bytes: int = 0


def listed(manifest: Manifest) -> Iterator[str]:
    """The names of all chunks that a manifest lists."""
    for lane in manifest.lane_states.values():
        for listing in lane.states.values():
            for chunk in listing.chunks:
                yield chunk.name


def sweep(root: str | os.PathLike[str], manifests: Iterable[Manifest]) -> Swept:
    """Delete the chunk files below `root` that none of the kept manifests lists, and what broken-off writes left.

    Files of steps later than the newest manifest may belong to the step that is running: they stay, as does every file
    that is not a chunk's. Folders that are empty go too. Raises `SinkError` where a file cannot be deleted.
    """
    keep: set[str] = set()
    newest = None
    for manifest in manifests:
        keep.update(listed(manifest))
        newest = manifest.step if newest is None else max(newest, manifest.step)
    if newest is None:
        return Swept()
    base = os.path.abspath(root)
    kept = {f"{base}/{name}{SUFFIX}" for name in keep}
    files = size = 0
    for path, step in _chunk_files(base, top=True):
        if step > newest or path in kept:
            continue
        try:
            found = os.stat(path).st_size
            os.unlink(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise cannot_write(error, path) from error
        forget_opened([path])
        files, size = files + 1, size + found
    return Swept(files, size)


def _chunk_files(folder: str, *, top: bool) -> Iterator[tuple[str, int]]:
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        folders = []
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            elif match := _CHUNK.fullmatch(entry.name):
                yield f"{folder}/{entry.name}", int(match[1])
        for name in folders:
            yield from _chunk_files(f"{folder}/{name}", top=False)
    if not top:
        with suppress(OSError):
            os.rmdir(folder)
