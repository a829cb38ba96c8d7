"""Chunks in memory over chunks in files: what a step makes is written when it is known what its manifest lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import count

import pyarrow as pa

from midstream.model.errors import MidstreamError
from midstream.model.frozen import revised
from midstream.model.ids import LaneId, StateKind
from midstream.model.manifest import MOST_INSIDE, ChunkRef, LaneState, Manifest, StateListing
from midstream.state.chunk_store import Chunk, Unwritten
from midstream.state.memory_store import MemoryStore
from midstream.storage.files import FileStore

SMALL = 64 << 10
"""Chunks of up to so many bytes are written together: of a file of its own, making it costs more than its bytes."""

LARGE = 1 << 20
"""Chunks of more bytes are mapped once they are written: what a step reads of them is a small part."""

MOST_MAPPED = 1 << 14
"""So many chunks are mapped at a time: Linux maps 65,530 files into a process."""

Kept = tuple[str, int, int]
EachChunk = Callable[[Callable[[str], Kept], Iterable[str]], Iterable[Kept]]
"""Writes several chunks, in order, perhaps at the same time."""


class WriteBackStore:
    """A `ChunkStore` of one process that writes a checkpoint.

    What is put stays in memory, and is not written before `written` says what of it a manifest lists: much of what a
    step makes is merged within the step. Once written, large chunks are mapped files; so is what is read, as long as it
    is listed. Small chunks stay in memory, unless the limit of the process is near: then they are mapped too.

    >>> from tempfile import TemporaryDirectory
    >>> from midstream.state.chunk_store import store_chunk
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
        """The names of the chunks that are at hand: put since this process began, or read."""
        self._mapped: set[str] = set()
        self._fresh: set[str] = set()
        self._written = count(1)

    def put(self, name: str, batch: pa.RecordBatch | Unwritten) -> tuple[str, int, int]:
        """Keep a batch in memory, under a name that `written` replaces."""
        kept = self._memory.put(name, batch)
        self._fresh.add(kept[0])
        return kept

    def get(self, ref: ChunkRef) -> pa.RecordBatch:
        """Return the batch that was put, or the one in the file."""
        return self.chunk(ref).batch

    def chunk(self, ref: ChunkRef) -> Chunk:
        """Return the chunk that was put, or the one in the file."""
        if ref.name in self._memory:
            return self._memory.chunk(ref)
        chunk = self.files.chunk(ref)
        if len(self._mapped) < MOST_MAPPED and self.files.is_near(ref):
            self._map(ref, chunk)
        return chunk

    def claim(self, more: int, what: str) -> None:
        """Ask the limit, if there is one."""
        self.files.claim(more, what)

    def _map(self, ref: ChunkRef, chunk: Chunk) -> None:
        self._mapped.add(ref.name)
        self._memory.replace(ref.name, chunk)

    def written(self, manifest: Manifest, each: EachChunk = map) -> Manifest:
        """Write chunks that the manifest lists and only memory holds; returns the manifest, listing them by files.

        Raises `SinkError` where it cannot be written; then nothing has changed, and it can be done again.
        """
        number = next(self._written)
        lanes, new = self._listed(manifest.lane_states, f"{manifest.step:08d}-small.{number}", each, "")
        self._let_go(lanes, new)
        if len(lanes) > MOST_INSIDE:
            of_group = Counter(lane.group for lane in lanes)
            lanes = self.in_parts(lanes, f"{manifest.step:08d}-lanes.{number}", of_group.__getitem__)
        return manifest if lanes is manifest.lane_states else replace(manifest, lane_states=lanes)

    def in_parts(
        self, lanes: Mapping[LaneId, LaneState], label: str, lanes_of: Callable[[str], int]
    ) -> Mapping[LaneId, LaneState]:
        """Write lanes of groups that have many apart from the manifest; returns the lanes, named by their parts.

        Lanes that have a part are not written again. The parts go into one file that is named by a `label`, which
        nothing else may use; `lanes_of` counts the lanes of a group. Raises `SinkError` if it cannot write.
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
        other one does no harm. Raises `SinkError` if it cannot write.
        """
        return self._listed(lanes, label, each, rows_label)[0]

    def _listed(
        self, lanes: Mapping[LaneId, LaneState], label: str, each: EachChunk, rows_label: str
    ) -> tuple[Mapping[LaneId, LaneState], Collection[ChunkRef]]:
        refs = {ref.name: ref for ref in _chunks(lanes) if ref.name in self._fresh}
        if not refs:
            return lanes, ()
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
        new = {name: refs[name].kept_as(*kept) for name, kept in found.items()}
        return _listing(lanes, new), new.values()

    def _let_go(self, lanes: Mapping[LaneId, LaneState], new: Collection[ChunkRef]) -> None:
        near, mapped = self.files.limit is not None and self.files.limit.is_near, dict[str, Chunk]()
        for ref in _chunks(lanes) if near else new:
            if ref.name in self._mapped or not (near or ref.bytes > LARGE):
                continue
            # What cannot be mapped, by any of many reasons, stays where it is.
            with suppress(MidstreamError):
                if len(self._mapped) < MOST_MAPPED and self.files.is_near(ref):
                    mapped[ref.name] = Chunk(self.files.mapped(ref))
                    self._map(ref, mapped[ref.name])
        if mapped:
            _remake(lanes, mapped, self)

    def retain(self, names: Iterable[str]) -> None:
        """Drop every chunk in memory except these."""
        kept = set(names)
        self._memory.retain(kept)
        self._fresh &= kept
        self._mapped &= kept


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


def _remake(lanes: Mapping[LaneId, LaneState], mapped: Mapping[str, Chunk], store: WriteBackStore) -> None:
    # What listings know their chunks by holds the memory of these.
    for lane in lanes.values():
        for listing in lane.states.values():
            if listing.known is not None and [1 for ref in listing.chunks if ref.name in mapped]:
                runs = zip(listing.chunks, listing.known[1], strict=True)
                made = [run.read_as(mapped[ref.name]) if ref.name in mapped else run for ref, run in runs]
                listing.made_of(made, store, always=True)
