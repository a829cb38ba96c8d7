"""Chunks in memory over chunks in files: what a step makes is written when it is known what its manifest lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count

import pyarrow as pa

from midstream.model.frozen import revised
from midstream.model.ids import LaneId, StateKind
from midstream.model.manifest import MOST_INSIDE, ChunkRef, LaneState, Manifest, StateListing
from midstream.state.store.chunk_store import Unwritten
from midstream.state.store.files import FileStore
from midstream.state.store.memory import MemoryStore

SMALL = 64 << 10
"""Chunks of up to so many bytes are written together: of a file of its own, making it costs more than its bytes."""

Kept = tuple[str, int, int]
EachChunk = Callable[[Callable[[str], Kept], Iterable[str]], Iterable[Kept]]
"""Writes several chunks, in order, perhaps at the same time."""


class WriteBackStore:
    """A `ChunkStore` of one process that writes a checkpoint.

    What is put stays in memory, and is not written before `written` says what of it a manifest lists: much of what a
    step makes is merged within the step. What was put since this process began is read from memory, the rest from
    files.

    >>> from tempfile import TemporaryDirectory
    >>> from midstream.state.store.chunk_store import store_chunk
    >>> from midstream.model.ids import LaneId, StateId
    >>> with TemporaryDirectory() as folder:
    ...     store = WriteBackStore(FileStore(folder))
    ...     ref = store_chunk(store, "000007-rows", pa.record_batch({"k": [1, 2]}))
    ...     id = StateId.parse("A.68d08664235b.rows")
    ...     lane = LaneState({id: StateListing((ref,))})
    ...     manifest = store.written(Manifest(step=7, lane_states={LaneId("single", 0): lane}))
    ...     (kept,) = manifest.lane_states[LaneId("single", 0)].states[id].chunks
    ...     kept.name, FileStore(folder).get(kept).to_pydict()
    ('00000007-small.1@0', {'k': [1, 2]})
    """

    def __init__(self, files: FileStore, *, small: int = SMALL) -> None:
        """Open a store over `files`; chunks of up to `small` bytes share a file."""
        self.files, self._small = files, small
        self._memory = MemoryStore()
        self.in_memory: Container[str] = self._memory.in_memory
        """The names of the chunks that were put since this process began."""
        self._fresh: set[str] = set()
        self._written = count(1)

    def put(self, name: str, batch: pa.RecordBatch | Unwritten) -> tuple[str, int, int]:
        """Keep a batch in memory, under a name that `written` replaces."""
        kept = self._memory.put(name, batch)
        self._fresh.add(kept[0])
        return kept

    def get(self, ref: ChunkRef) -> pa.RecordBatch:
        """Return the batch that was put, or the one in the file."""
        return self._memory.get(ref) if ref.name in self._memory else self.files.get(ref)

    def written(self, manifest: Manifest, each: EachChunk = map) -> Manifest:
        """Write chunks that the manifest lists and only memory holds; returns the manifest, listing them by files.

        Raises `SinkError` where it cannot be written; then nothing has changed, and it can be done again.
        """
        number = next(self._written)
        lanes = self.listed(manifest.lane_states, f"{manifest.step:08d}-small.{number}", each)
        if len(lanes) > MOST_INSIDE:
            of_group = Counter(lane.group for lane in lanes)
            lanes = self.in_parts(lanes, f"{manifest.step:08d}-lanes.{number}", of_group.__getitem__)
        return manifest if lanes is manifest.lane_states else replace(manifest, lane_states=lanes)

    def in_parts(
        self, lanes: Mapping[LaneId, LaneState], label: str, lanes_of: Callable[[str], int]
    ) -> Mapping[LaneId, LaneState]:
        """Write lanes of groups that have many apart from the manifest; returns the lanes, named by their parts.

        Lanes that have a part are not written again. The parts go into one file that is named by a `label`, which
        nothing else may use; `lanes_of` counts the lanes of a group. Raises as `written` does.
        """
        new = [lane for lane, state in lanes.items() if state.part is None and lanes_of(lane.group) > MOST_INSIDE]
        if not new:
            return lanes
        return {**lanes, **dict(zip(new, self.files.put_lanes(label, [lanes[lane] for lane in new]), strict=True))}

    def listed(
        self, lanes: Mapping[LaneId, LaneState], label: str, each: EachChunk = map, *, rows_label: str = ""
    ) -> Mapping[LaneId, LaneState]:
        """Write chunks that lanes list and only memory holds; returns the lanes, listing them by files.

        Small chunks go into one file that is named by a `label`, which nothing else may use. With a `rows_label` those
        of base rows, and of what else cannot be computed again, share a file of their own, so that the loss of the
        other one does no harm. Raises as `written` does.
        """
        refs = {ref.name: ref for ref in _chunks(lanes) if ref.name in self._fresh}
        if not refs:
            return lanes
        batches = {name: self._memory.get(ref) for name, ref in refs.items()}
        small = [name for name, ref in refs.items() if ref.bytes <= self._small]
        large = [name for name, ref in refs.items() if ref.bytes > self._small]
        found = dict(zip(large, each(lambda name: self.files.put(name, batches[name]), large), strict=True))
        apart = _primary(lanes) if rows_label else frozenset[str]()
        files = {label: [n for n in small if n not in apart], rows_label: [n for n in small if n in apart]}
        for file_label, names in files.items():
            if names:
                found |= zip(names, self.files.put_together(file_label, [batches[n] for n in names]), strict=True)
        self.files.finish()
        for name, (file, _, _) in found.items():
            self._memory.rename(name, file)
        self._fresh.clear()
        return _listing(lanes, {name: refs[name].kept_as(*kept) for name, kept in found.items()})

    def retain(self, names: Iterable[str]) -> None:
        """Drop every chunk in memory except these."""
        kept = set(names)
        self._memory.retain(kept)
        self._fresh &= kept


def _chunks(lanes: Mapping[LaneId, LaneState]) -> Iterator[ChunkRef]:
    for lane in lanes.values():
        for listing in lane.states.values():
            yield from listing.chunks


def _primary(lanes: Mapping[LaneId, LaneState]) -> frozenset[str]:
    # Join states can be computed again; the rest cannot.
    states = (item for lane in lanes.values() for item in lane.states.items())
    return frozenset(ref.name for id, listing in states if id.kind is not StateKind.INDEX for ref in listing.chunks)


def _listing(lanes: Mapping[LaneId, LaneState], others: dict[str, ChunkRef]) -> Mapping[LaneId, LaneState]:
    def with_others(listing: StateListing) -> StateListing:
        if not [1 for ref in listing.chunks if ref.name in others]:
            return listing
        chunks = tuple([others.get(ref.name, ref) for ref in listing.chunks])
        written = replace(listing, chunks=chunks)
        if listing.known is None:
            return written
        store, runs = listing.known
        renamed = [run if run.ref is ref else revised(run, ref=ref) for run, ref in zip(runs, chunks, strict=True)]
        return written.made_of(renamed, store, always=True)

    return {
        name: replace(lane, states={id: with_others(listing) for id, listing in lane.states.items()})
        for name, lane in lanes.items()
    }
