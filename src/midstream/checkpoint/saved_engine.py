"""An embedded engine written to a folder and read back."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from midstream.admission.refused_rows import apart
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.commands.set_table import SetTable
from midstream.model.codec import decode, encode
from midstream.model.errors import CheckpointError, SinkError
from midstream.model.events import Event
from midstream.model.manifest import ChunkRef, LaneState, Manifest, Published
from midstream.state.chunk_store import ChunkStore, store_chunk
from midstream.state.rows import one_batch
from midstream.storage.files import FileStore
from midstream.storage.local import LocalStorage
from midstream.storage.places import storage_at

STORE, MANIFESTS = "store", "manifests"


@dataclass(frozen=True)
class Saved:
    """What a folder holds of an engine."""

    manifest: Manifest
    events: tuple[Event, ...]
    late: Mapping[str, pa.Table]
    dead_letters: Mapping[str, pa.Table]


def save_engine(
    path: str | os.PathLike[str],
    manifest: Manifest,
    store: ChunkStore,
    events: Sequence[Event],
    late: Mapping[str, pa.Table],
    dead_letters: Mapping[str, pa.Table],
) -> None:
    """Write an engine next to `path`, then put it in its place; only then an earlier save is removed.

    Raises `CheckpointError` where there is anything else, such as the checkpoint of a job: it stays.
    """
    target = _folder(path)
    fresh, former = target.with_name(f"{target.name}.saving"), target.with_name(f"{target.name}.former")
    try:
        _recover(target)
        if target.exists():
            _refuse_other(target)
        for leftover in (fresh, former):
            shutil.rmtree(leftover, ignore_errors=True)
        files = FileStore(fresh / STORE)
        kept = Published(
            events=tuple(map(encode, events)),
            late=_put_tables(files, "late", late),
            dead_letters=_put_tables(files, "dead", dead_letters),
        )
        ManifestLog(fresh / MANIFESTS).publish(replace(_moved(manifest, store, files), published=kept))
        if target.exists():
            os.replace(target, former)
        os.replace(fresh, target)
        shutil.rmtree(former, ignore_errors=True)
    except OSError as error:
        raise SinkError(
            f"cannot save: {error}", place=str(target), remedy="make space on the disk, or use another folder"
        ) from error


def _folder(path: str | os.PathLike[str]) -> Path:
    # Raises for a place on an object store: the renames of a save need a folder.
    storage = storage_at(path)
    if not isinstance(storage, LocalStorage):
        remedy = "name a folder of this machine, or make the engine with checkpoint=... on the object store"
        raise CheckpointError("a saved engine must be in a folder", place=storage.url, remedy=remedy)
    return storage.root


def _refuse_other(target: Path) -> None:
    # All that a save does not leave there would be lost.
    others = sorted({path.name for path in target.iterdir()} - {STORE, MANIFESTS}) if target.is_dir() else []
    if others or _saved(target) is None:
        said = f"{target} is not a saved engine" + (f": it has {others[0]!r}" if others else "")
        raise CheckpointError(said, place=str(target), remedy="save to a new folder")


def _saved(folder: Path) -> Manifest | None:
    # The manifest of a job is none of an engine.
    manifest = ManifestLog(folder / MANIFESTS).latest() if (folder / MANIFESTS).is_dir() else None
    return None if manifest is None or manifest.job else manifest


def _recover(target: Path) -> None:
    # A save that was cut off between its two renames: the former save is still whole.
    former = target.with_name(f"{target.name}.former")
    if not target.exists() and (former / MANIFESTS).is_dir():
        os.replace(former, target)


def load_engine(path: str | os.PathLike[str], store: ChunkStore) -> Saved:
    """Read what `save_engine` wrote, and put its chunks into `store`."""
    source = _folder(path)
    _recover(source)
    manifest = _saved(source)
    if manifest is None:
        remedy = "name a folder that Engine.save wrote"
        raise CheckpointError(f"{source} is not a saved engine", place=str(source), remedy=remedy)
    files, kept = FileStore(source / STORE), manifest.published
    return Saved(
        replace(_moved(manifest, files, store), published=Published()),
        tuple(decode(Event, event) for event in kept.events),
        {name: _get_table(files, value) for name, value in kept.late.items()},
        apart({name: _get_table(files, value) for name, value in kept.dead_letters.items()}, manifest.streams),
    )


def _moved(manifest: Manifest, source: ChunkStore, target: ChunkStore) -> Manifest:
    lanes = {name: _moved_lane(lane, source, target) for name, lane in manifest.lane_states.items()}
    tables = {
        n: replace(table, chunk=_moved_chunk(table.chunk, source, target)) for n, table in manifest.tables.items()
    }
    waiting = [
        replace(one, chunk=_moved_chunk(one.chunk, source, target)) if isinstance(one, SetTable) else one
        for one in manifest.pending
    ]
    return replace(manifest, lane_states=lanes, tables=tables, pending=tuple(waiting))


def _moved_chunk(ref: ChunkRef, source: ChunkStore, target: ChunkStore) -> ChunkRef:
    name, size, checksum = target.put(ref.name, source.get(ref))
    return replace(ref, name=name, bytes=size, checksum=checksum)


def _moved_lane(lane: LaneState, source: ChunkStore, target: ChunkStore) -> LaneState:
    def moved(ref: ChunkRef) -> ChunkRef:
        return _moved_chunk(ref, source, target)

    states = {}
    for state_id, old in lane.states.items():
        try:
            states[state_id] = replace(old, chunks=tuple(map(moved, old.chunks)))
        except CheckpointError:
            # A join state that is left out is computed again from base rows with the next step.
            if state_id.is_base:
                raise
    return replace(lane, states=states)


def _put_tables(store: ChunkStore, kind: str, tables: Mapping[str, pa.Table]) -> dict[str, ChunkRef]:
    return {
        name: store_chunk(store, f"{kind}/{name}/0-rows", one_batch(table, name))
        for name, table in tables.items()
        if table.num_rows
    }


def _get_table(store: ChunkStore, ref: ChunkRef) -> pa.Table:
    return pa.Table.from_batches([store.get(ref)])
