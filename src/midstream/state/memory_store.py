"""Chunks in the memory of this process."""

from __future__ import annotations

from collections.abc import Container, Iterable
from itertools import count

import pyarrow as pa

from midstream.model.errors import CheckpointError
from midstream.model.frozen import make_room
from midstream.model.manifest import ChunkRef
from midstream.state.chunk_store import Chunk, Unwritten


class MemoryStore:
    """A `ChunkStore` that holds on to what it is given; nothing is copied, checked, or made a batch before it is read.

    A batch cut out of a larger table keeps the whole table alive: put compact batches. The checksum is always 0.

    >>> store = MemoryStore()
    >>> batch = pa.record_batch({"k": [1, 2]})
    >>> name, size, checksum = store.put("A.lane0/000012-base", batch)
    >>> store.get(ChunkRef(name, 2, size, checksum)) is batch
    True
    """

    def __init__(self) -> None:
        self._chunks: dict[str, pa.RecordBatch | Unwritten] = {}
        self._widths = Widths()
        self.in_memory: Container[str] = self._chunks
        """The names of all chunks."""

    def __len__(self) -> int:
        return len(self._chunks)

    def __contains__(self, name: str) -> bool:
        return name in self._chunks

    def put(self, name: str, batch: pa.RecordBatch | Unwritten) -> tuple[str, int, int]:
        """Keep a batch; where its name is taken by other content, it gets the nearest free name."""
        # A fold may be run twice from one manifest, on different input: neither run may see the other's chunks.
        final, numbers = name, count(1)
        while (held := self._chunks.setdefault(final, batch)) is not batch and not _same(held, batch):
            final = f"{name}~{next(numbers)}"
        return final, self._widths.size_of(batch), 0

    def get(self, ref: ChunkRef) -> pa.RecordBatch:
        """Return the very batch that was put."""
        return self.chunk(ref).batch

    def chunk(self, ref: ChunkRef) -> Chunk:
        """Return the chunk of the batch that was put."""
        try:
            found = self._chunks[ref.name]
        except KeyError:
            raise CheckpointError(
                f"chunk {ref.name} is not in memory",
                place="memory store",
                remedy="keep the chunks of every manifest that is still used, or load the checkpoint again",
            ) from None
        if not isinstance(found, Chunk):
            found = self._chunks[ref.name] = Chunk(_batch(found))
        return found

    def claim(self, more: int, what: str) -> None:
        """Allow everything."""

    def rename(self, name: str, other: str) -> None:
        """Keep a chunk under another name."""
        self._chunks[other] = self._chunks.pop(name)

    def replace(self, name: str, chunk: Chunk) -> None:
        """Keep an equal chunk of other memory under a name."""
        self._chunks[name] = chunk

    def retain(self, names: Iterable[str]) -> None:
        """Drop every chunk except these."""
        self.forget(self._chunks.keys() - names)

    def forget(self, names: Iterable[str]) -> None:
        """Drop chunks that no manifest lists any more; unknown names are passed over."""
        for name in names:
            self._chunks.pop(name, None)


class Widths(dict[tuple[str, ...], tuple[pa.Schema, int | None]]):
    """By the names of columns the schema that was last asked for, and its width, which takes long to find."""

    def size_of(self, batch: pa.RecordBatch | Unwritten) -> int:
        """Return the bytes of a batch, `nbytes`; computed at once where buffers are no larger than values need."""
        if isinstance(batch, Chunk):
            batch = batch.batch
        if not isinstance(batch, pa.RecordBatch):
            return batch.nbytes
        schema = batch.schema
        names = tuple(schema.names)
        known = self.get(names)
        if known is None or known[0] != schema:
            make_room(self, _REMEMBERED)
            known = self[names] = schema, width_of(schema)
        plain = plain_size(batch, known[1])
        return int(batch.nbytes) if plain is None else plain


_REMEMBERED = 256


def plain_size(batch: pa.RecordBatch, width: int | None) -> int | None:
    """Compute the bytes of a batch whose buffers hold one value of fixed width per row and no more; None for others.

    `width` is that of the batch's schema.

    >>> one, other = pa.record_batch({"k": [1, 2]}), pa.record_batch({"k": [1, None]})
    >>> plain_size(one, width_of(one.schema)), plain_size(other, width_of(other.schema))
    (16, None)
    """
    total: int = batch.get_total_buffer_size()
    return total if width is not None and total == batch.num_rows * width // 8 else None


def width_of(schema: pa.Schema) -> int | None:
    """Compute the bits of a row; None where there are columns, such as texts, whose values have no width."""
    try:
        return sum([int(kind.bit_width) for kind in schema.types])
    except ValueError:
        return None


def _same(held: pa.RecordBatch | Unwritten, batch: pa.RecordBatch | Unwritten) -> bool:
    return bool(_batch(held).equals(_batch(batch), check_metadata=True))


def _batch(held: pa.RecordBatch | Unwritten) -> pa.RecordBatch:
    return held if isinstance(held, pa.RecordBatch) else held.to_batch()
