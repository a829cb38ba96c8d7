"""Chunk files that no kept manifest lists are deleted."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from midstream.model.manifest import Manifest
from midstream.state.chunk_store import SUFFIX, file_of, files_of_lane
from midstream.storage.files import forget_opened
from midstream.storage.local import LocalStorage
from midstream.storage.places import Place, storage_at
from midstream.storage.storage_contract import Storage

_CHUNK = re.compile(rf"(?:epoch=(\d+)/)?(?:.*/)?\.?(\d+)-[^/]*(?:{re.escape(SUFFIX)}|\.tmp)", re.DOTALL)


TIMES_BETWEEN_LOOKS = 128
"""How often a `Sweeper` deletes by name before it looks at every file again."""


TABLES = "tables"
"""The folder of the chunks of static tables: they are put there before a command names them."""

Brought = Callable[[], Collection[str] | None]
"""The chunks that commands bring which a kept manifest has not taken; None where that cannot be known."""


@dataclass(frozen=True)
class Swept:
    """What a sweep deleted."""

    files: int = 0
    bytes: int = 0


def listed(manifest: Manifest) -> list[str]:
    """List the names of all chunks in a manifest."""
    lanes = manifest.lane_states.values()
    names = [chunk.name for lane in lanes for listing in lane.states.values() for chunk in listing.chunks]
    return names + _others(manifest)


def files_of(manifest: Manifest) -> set[str]:
    """Collect the files of a manifest's chunks, and of the parts that its lanes are written in.

    Reads no part of which a task has reported the files.
    """
    found = set(map(file_of, _others(manifest)))
    for lane in manifest.lane_states.values():
        found.update(files_of_lane(lane))
        if lane.part is not None:
            found.add(file_of(lane.part.name))
    return found


def _others(manifest: Manifest) -> list[str]:
    # Chunks that are in no lane.
    names = [table.chunk.name for table in manifest.tables.values()]
    for command in manifest.pending:
        names += command.chunks
    return names


def sweep(root: Place, manifests: Iterable[Manifest], brought: Brought = lambda: None) -> Swept:
    """Delete the chunk files that none of the kept manifests lists, and what interrupted writes left.

    Files of the newest manifest's epoch and of steps later than it may belong to the step that is running, those of
    later epochs to another driver: they stay, as does every file that is not a chunk's. Those of static tables stay
    where a command has `brought` them, or may bring them; that is asked after all else was looked at, if need be.
    Folders that are empty go as well. Raises `SinkError` where a file cannot be deleted.
    """
    storage = storage_at(root, durable=False)
    keep: set[str] = set()
    newest = (-1, -2)
    for manifest in manifests:
        keep |= files_of(manifest)
        newest = max(newest, (manifest.epochs[-1].number if manifest.epochs else 0, manifest.step))
    if newest[0] < 0:
        return Swept()
    sizes = {name: size for name, size in storage.walk() if name not in keep and _is_older(name, newest)}
    gone = without_brought(sizes, brought)
    storage.remove(gone)
    forget_opened(map(storage.place, gone))
    if isinstance(storage, LocalStorage):
        _remove_empty(storage.root)
    return Swept(len(gone), sum(sizes[name] for name in gone))


class Sweeper:
    """Sweeps a store while one job writes it, again and again, without looking at every file each time.

    What manifests have listed since the last time and none lists any more is deleted by name; now and then, and the
    first time, everything is looked at, for what broken-off attempts have left. It must be called before a manifest
    that was published since the last time is no longer kept.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._listed: set[str] | None = None
        self._times = 0

    def sweep(self, manifests: Iterable[Manifest], brought: Brought = lambda: None) -> None:
        """Delete files that none of the kept manifests lists, except those that commands have `brought`."""
        manifests = tuple(manifests)
        now = set[str]().union(*map(files_of, manifests))
        if self._listed is None or self._times % TIMES_BETWEEN_LOOKS == 0:
            sweep(self._storage, manifests, brought)
            self._listed = now
        else:
            gone = without_brought(sorted(self._listed - now), brought)
            self._storage.remove(gone)
            forget_opened(map(self._storage.place, gone))
            self._listed = (self._listed | now).difference(gone)
        self._times += 1


def without_brought(names: Iterable[str], brought: Brought) -> list[str]:
    """Select the names that no command brings."""
    names = list(names)
    of_tables = {name for name in names if name.startswith(f"{TABLES}/")}
    if not of_tables:
        return names
    known = brought()
    spared = of_tables if known is None else of_tables.intersection(map(file_of, known))
    return [name for name in names if name not in spared]


def is_chunk(name: str) -> bool:
    """Return whether a file has a chunk's name, or that of what an interrupted write leaves of one."""
    return _CHUNK.fullmatch(name) is not None


def _is_older(name: str, newest: tuple[int, int]) -> bool:
    # Chunks of former epochs are older, whatever their step.
    found = _CHUNK.fullmatch(name)
    return found is not None and (int(found[1] or 0), int(found[2]) if int(found[1] or 0) == newest[0] else 0) <= newest


def _remove_empty(root: Path) -> None:
    for folder, _, _ in os.walk(root, topdown=False):
        if Path(folder) != root:
            with suppress(OSError):
                os.rmdir(folder)
