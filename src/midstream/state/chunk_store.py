"""What a chunk store promises."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Hashable, Mapping
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from midstream.model.manifest import ChunkRef, LaneState
from midstream.model.window import Clock

Made = TypeVar("Made")


SUFFIX = ".arrow"
"""The end of the name of a chunk's file."""

AT = "@"
"""In the name of a chunk that lies with others in a file: what is before it names the file, after it is its place."""


class Unwritten(Protocol):
    """What a batch can be made of when somebody wants to read or write it."""

    def __len__(self) -> int:
        """Count the rows of the batch."""
        ...

    @property
    def nbytes(self) -> int:
        """The bytes of the batch."""
        ...

    def to_batch(self) -> pa.RecordBatch:
        """Build the batch, always the same."""
        ...


class Chunk:
    """A batch that is used in several steps, with what was made of it; it is dropped together with its batch.

    >>> chunk = Chunk(pa.record_batch({"k": [2, 1]}))
    >>> chunk.once("sorted", lambda: chunk.batch.sort_by("k")) is chunk.once("sorted", lambda: None)
    True
    """

    __slots__ = ("_made", "batch")

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch, self._made = batch, dict[Hashable, Any]()

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    @property
    def nbytes(self) -> int:
        """The bytes of the batch."""
        return int(self.batch.nbytes)

    def to_batch(self) -> pa.RecordBatch:
        """Return the batch."""
        return self.batch

    def once(self, what: Hashable, make: Callable[[], Made]) -> Made:
        """Return what `make` makes of the batch, made when it is first asked for."""
        if what not in self._made:
            self._made[what] = make()
        found: Made = self._made[what]
        return found


class ChunkStore(Protocol):
    """A place for immutable chunks: whatever is put under a name stays as it is until it is taken away.

    A name is a path of `/`-separated parts whose last part begins with the number of the step that made the chunk and a
    dash: `A.lane0/000012-base`. The store may change it, so that chunks of different content never share a name: a
    manifest must list the name that `put` gives back. To put the same content under the same name again changes
    nothing, so a step can be replayed.
    """

    @property
    def in_memory(self) -> Container[str]:
        """The names of chunks that are in this process's memory."""
        ...

    def put(self, name: str, batch: pa.RecordBatch | Unwritten) -> tuple[str, int, int]:
        """Keep a batch; returns the name to list it by, its bytes and its checksum."""
        ...

    def get(self, ref: ChunkRef) -> pa.RecordBatch:
        """Return the batch of a listed chunk, equal to the one that was put; it must not be written to."""
        ...

    def chunk(self, ref: ChunkRef) -> Chunk:
        """Return a listed chunk: the same one as long as the store keeps it.

        Raises `CheckpointError` where the chunk is missing, damaged or of another format version.
        """
        ...

    def claim(self, more: int, what: str) -> None:
        """Ask for so many bytes of memory for a step; raises `InputError` where a limit does not allow them."""
        ...


def store_chunk(
    store: ChunkStore,
    name: str,
    batch: pa.RecordBatch | Unwritten,
    *,
    first: int = 0,
    lifetimes: Mapping[Clock, tuple[int, int]] | None = None,
    born: tuple[int, int] | None = None,
    slice: int = 0,
    alive: int = 0,
) -> ChunkRef:
    """Put a batch and describe it for a manifest."""
    kept_as, size, checksum = store.put(name, batch)
    return ChunkRef(kept_as, len(batch), size, checksum, first, lifetimes or {}, born, slice, alive)


def file_of(chunk: str) -> str:
    """Return the name of the file that contains a chunk."""
    return f"{chunk.partition(AT)[0]}{SUFFIX}"


def files_of_lane(lane: LaneState) -> Collection[str]:
    """Collect the files of a lane's chunks."""
    if lane.files is not None:
        return lane.files
    return {file_of(chunk.name) for listing in lane.states.values() for chunk in listing.chunks}
