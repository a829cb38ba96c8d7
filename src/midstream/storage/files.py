"""Chunks as files: one Arrow IPC file each, or several together, written whole, read by mapping them into memory."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Sequence
from copy import copy
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa

from midstream.model.codec import decode, encode
from midstream.model.errors import CheckpointError
from midstream.model.manifest import FORMAT_SINCE, FORMAT_VERSION, ChunkRef, LanePart, LaneState
from midstream.state.chunk_store import AT, Chunk, Unwritten, file_of
from midstream.storage.disk import FIRST, crc32, other_format, seal, unseal
from midstream.storage.memory_limit import MemoryLimit
from midstream.storage.places import Place, storage_at
from midstream.storage.process_resources import RESOURCES
from midstream.storage.transfers import Transfers
from midstream.storage.unsynced import Unsynced

_FORMAT_KEY, _SINCE_KEY = b"midstream.format", b"midstream"
_WISH = re.compile(r"(?:(.+?)/)?(\d+)-(.+)", re.DOTALL)
_NAME = re.compile(r"(?:[^/.\0][^/\0]*/)*\d+-[^/\0@]+(?:@\d+)?")
_UNSAFE = re.compile(r"[^A-Za-z0-9_.+=~-]|^\.")
_LONGEST = 100
_ALIGNMENT = 64
_APART = 1 << 20
"""Larger chunks are not put together in memory before they are written."""

_UNCOMPRESSED = pa.ipc.IpcWriteOptions(compression=None)  # Or mapped columns would have to be copied to be read.
_REMEDY = "restore the file from a backup, or go back to an older step whose chunks are whole"

_SHARED = "keep the checkpoint where every machine sees what another one has just written"


class FileStore:
    """A `ChunkStore` of files below a folder, which tasks in other processes share.

    Writes are atomic, and content decides the name: `put` makes it fit for a file (names carry what users call their
    streams) and appends the CRC-32 of the file's bytes. Chunks of an `epoch` lie in a folder of it, so that no driver
    sweeps away what a later one has written. Reads are zero-copy: the columns of a batch are views of the mapped file,
    which stay valid when the file is removed. A chunk's bytes are checked when this process first reads it; opened
    chunks are kept in a cache of bounded size that all stores of the process share. A store can be pickled, as its
    storage can. With `write_behind`, `put` may return before the chunk is written: then `finish` must have returned
    before a manifest lists it.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     store = FileStore(folder)
    ...     name, size, checksum = store.put("A.lane0/000012-base", pa.record_batch({"k": [1, 2]}))
    ...     store.get(ChunkRef(name, 2, size, checksum)).to_pydict()
    {'k': [1, 2]}
    """

    in_memory: Container[str] = frozenset()
    """What was read is remembered by file, for all stores of a folder."""

    def __init__(
        self, root: Place, *, epoch: int = 0, write_behind: bool = False, limit: MemoryLimit | None = None
    ) -> None:
        """Open a store in a folder, which is created when the first chunk is put.

        What opened chunks take is at most half of the `limit` of each process that uses the store.
        """
        self.limit = limit
        self.storage = storage_at(root, durable=False)
        self._epoch = f"{epoch_folder(epoch)}/" if epoch else ""
        self._write_behind = write_behind and self.storage.at_once > 1
        self._transfers = Transfers(self.storage)

    def __getstate__(self) -> dict[str, Any]:
        # Without what is kept beside: samples of many chunks would travel to every task of every step.
        return {name: vars(self)[name] for name in ("limit", "storage", "_epoch", "_write_behind")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _transfers=Transfers(state["storage"]))

    def synced_with(self, unsynced: Unsynced) -> FileStore:
        """Return the store with its files synced later, together with all that `unsynced` notes."""
        found = copy(self)
        found.storage = self.storage.synced_with(unsynced)
        found._transfers = Transfers(found.storage)
        return found

    @property
    def root(self) -> Path:
        """The folder of the chunks, where they are in one."""
        return Path(self.storage.url)

    def put(self, name: str, batch: pa.RecordBatch | Unwritten) -> tuple[str, int, int]:
        """Write a batch; returns its final name, the size of its file and the CRC-32 of the file's bytes.

        Raises `SinkError` where it cannot be written; then nothing has changed.
        """
        pieces = _serialize(batch if isinstance(batch, pa.RecordBatch) else batch.to_batch())
        size, checksum = sum(map(len, pieces)), reduce(lambda start, one: crc32(one, start), pieces, 0)
        # A file system takes a large chunk from the memory of its columns.
        data = tuple(pieces) if size > _APART and self.storage.renames_folders else b"".join(pieces)
        final = f"{self._epoch}{_for_files(name)}-{checksum:08x}"
        file = self._file(final)
        self.storage.keep_copy(file, data)
        if self._write_behind:
            self._transfers.write(file, data)
        else:
            self.storage.write(file, data)
        return final, size, checksum

    def put_together(self, label: str, batches: Sequence[pa.RecordBatch]) -> list[tuple[str, int, int]]:
        """Write batches into one file; returns each one's name (with its offset in the file), bytes and CRC-32.

        Nobody else may give the same `label`, which is made like a chunk's name.
        """
        return self._put_in_one(label, (b"".join(_serialize(batch)) for batch in batches), _ALIGNMENT)

    def put_lanes(self, label: str, states: Sequence[LaneState]) -> list[LaneState]:
        """Write what lanes hold into one file; returns the states, each as it is named by its part.

        Nobody else may give the same `label`, which is made like a chunk's name.
        """
        places = self._put_in_one(label, [seal(encode(state)) for state in states], 1)
        return [
            state.written(LanePart(*place, state.rows, state.moving))
            for state, place in zip(states, places, strict=True)
        ]

    def lane(self, part: LanePart) -> LaneState:
        """Read what a lane holds; raises `CheckpointError` where its part is missing or damaged."""
        file = self._file(part.name)
        place = self.storage.place(file)
        self._transfers.arrived(file)
        try:
            return _lane(self._mapped(file, part, place), part, place)
        except CheckpointError:
            if not self.storage.drop_copy(file):
                raise
            return _lane(self._mapped(file, part, place), part, place)

    def _put_in_one(self, label: str, pieces: Iterable[bytes], alignment: int) -> list[tuple[str, int, int]]:
        file = f"{self._epoch}{_for_files(label)}"
        parts, size, found = list[bytes](), 0, []
        for piece in pieces:
            gap = -size % alignment
            found.append((f"{file}{AT}{size + gap}", len(piece), crc32(piece)))
            parts += (bytes(gap), piece)
            size += gap + len(piece)
        data = b"".join(parts)
        self.storage.keep_copy(self._file(file), data)
        self.storage.write(self._file(file), data)
        return found

    def put_bytes(self, label: str, data: bytes) -> str:
        """Write bytes that only the running step reads; returns the name to read them by.

        Nobody else may give the same `label`, which is made like a chunk's name. No manifest lists them, so a sweep
        takes away what nobody has removed.
        """
        name = f"{self._epoch}{_for_files(label)}"
        self.storage.write(self._file(name), data)
        return name

    def get_bytes(self, name: str) -> pa.Buffer:
        """Read bytes that were put, as a mapped file; raises `CheckpointError` where they are missing."""
        file = self._file(name)
        try:
            return self.storage.mapped(file)
        except FileNotFoundError:
            message = f"{name} is missing, which this step has written"
            raise CheckpointError(message, place=self.storage.place(file), remedy=_SHARED) from None

    def remove_folder(self, folder: str) -> None:
        """Remove everything put below a folder in this epoch, if anything was."""
        self.storage.remove_folder(f"{self._epoch}{folder}")

    def finish(self) -> None:
        """Wait until every chunk that was put is written; raises `SinkError` where one could not be."""
        self._transfers.finish()

    def get(self, ref: ChunkRef) -> pa.RecordBatch:
        """Return the batch of a listed chunk, backed by the mapped file."""
        return self.chunk(ref).batch

    def chunk(self, ref: ChunkRef) -> Chunk:
        """Return a listed chunk, backed by the mapped file."""
        key = self._key(ref.name)
        chunk = _opened().find(key, ref.checksum)
        if chunk is None:
            chunk = Chunk(self._open(ref, verified=_opened().verified(key, ref.checksum)))
            _opened().keep(key, ref, chunk, None if self.limit is None else self.limit.most // 2)
        return chunk

    def claim(self, more: int, what: str) -> None:
        """Ask the limit of this process, if there is one."""
        if self.limit is not None:
            self.limit.claim(more, what)

    def is_near(self, ref: ChunkRef) -> bool:
        """Return whether a chunk's file is on this machine, where it can be mapped."""
        return self.storage.is_near(self._file(ref.name))

    def mapped(self, ref: ChunkRef) -> pa.RecordBatch:
        """Map a chunk that this process has just written; unlike `get`, no other store of the process keeps it."""
        return self._open(ref, verified=True)

    def read_ahead(self, refs: Iterable[ChunkRef]) -> None:
        """Begin to bring chunks to this machine that will be read soon, several at a time."""
        if self.storage.at_once > 1:
            files = {self._file(ref.name): ref for ref in refs}
            unread = (f for f, ref in files.items() if _opened().find(self._key(ref.name), ref.checksum) is None)
            self._transfers.read_ahead(unread)

    def remove(self, names: Iterable[str]) -> None:
        """Delete the files of chunks that no manifest lists any more; those already gone are passed over."""
        gone = [name for name in names if AT not in name]  # What lies with others in a file is left to the sweep.
        self.storage.remove(map(self._file, gone))
        forget_opened(map(self._key, gone))

    def _open(self, ref: ChunkRef, *, verified: bool) -> pa.RecordBatch:
        file = self._file(ref.name)
        place = self.storage.place(file)
        self._transfers.arrived(file)
        try:
            return _batch(self._mapped(file, ref, place), ref, place, verified=verified)
        except CheckpointError:
            if not self.storage.drop_copy(file):
                raise
            return _batch(self._mapped(file, ref, place), ref, place, verified=False)

    def _mapped(self, file: str, ref: ChunkRef | LanePart, place: str) -> pa.Buffer:
        try:
            try:
                data = self.storage.mapped(file)
            except FileNotFoundError:
                self.finish()  # It may not be written yet.
                data = self.storage.mapped(file)
        except FileNotFoundError:
            what = "chunk" if isinstance(ref, ChunkRef) else "lane part"
            raise CheckpointError(f"{what} {ref.name} is missing", place=place, remedy=_REMEDY) from None
        _, together, begin = ref.name.partition(AT)
        if not together:
            return data
        rest = data.slice(min(int(begin), data.size))
        return rest.slice(0, min(max(ref.bytes, 0), rest.size))

    def _file(self, name: str) -> str:
        if _NAME.fullmatch(name) is None:
            message = f"{name!r} cannot be the name of a chunk here"
            raise CheckpointError(message, place=self.storage.url, remedy=_REMEDY)
        return file_of(name)

    def _key(self, name: str) -> str:
        _, together, begin = name.partition(AT)
        return f"{self.storage.place(file_of(name))}{together}{begin}"


class _Opened:
    """The chunks this process has open, least recently used first, and which it has checked."""

    def __init__(self, bytes_kept: int, chunks_kept: int, marks_kept: int) -> None:
        self.bytes_kept, self.chunks_kept, self.marks_kept = bytes_kept, chunks_kept, marks_kept
        self.bytes = 0
        self._batches: OrderedDict[str, tuple[int, int, Chunk]] = OrderedDict()
        self._verified: OrderedDict[str, int] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, path: str, checksum: int) -> Chunk | None:
        with self._lock:
            entry = self._batches.get(path)
            if entry is None or entry[0] != checksum:
                return None
            self._batches.move_to_end(path)
            return entry[2]

    def verified(self, path: str, checksum: int) -> bool:
        return self._verified.get(path) == checksum

    def keep(self, path: str, ref: ChunkRef, chunk: Chunk, bytes_kept: int | None = None) -> None:
        most = self.bytes_kept if bytes_kept is None else bytes_kept
        with self._lock:
            self._forget(path)
            self._verified[path] = ref.checksum
            self._batches[path] = (ref.checksum, ref.bytes, chunk)
            self.bytes += ref.bytes
            while len(self._verified) > self.marks_kept:
                self._verified.popitem(last=False)
            while self._batches and (self.bytes > most or len(self._batches) > self.chunks_kept):
                self._forget(next(iter(self._batches)))

    def drop(self, path: str) -> None:
        with self._lock:
            self._forget(path)
            self._verified.pop(path, None)

    def _forget(self, path: str) -> None:
        entry = self._batches.pop(path, None)
        if entry is not None:
            self.bytes -= entry[1]


# A mapping costs address space, not memory, but it keeps the blocks of a removed file from being freed. What a worker
# of Spark has written itself is memory, and stays until other chunks put it out: only the driver knows what is listed.
def _opened() -> _Opened:
    return RESOURCES.once(OPENED, lambda: _Opened(bytes_kept=1 << 28, chunks_kept=1 << 14, marks_kept=1 << 16))


OPENED = "opened chunks"
"""The name of the opened chunks among the resources of a process."""


def forget_opened(places: Iterable[str]) -> None:
    """Let go of opened chunks whose files have been removed."""
    for place in places:
        _opened().drop(place)


def epoch_folder(epoch: int) -> str:
    """Name the folder of the chunks that an epoch writes."""
    return f"epoch={epoch:06d}"


def _for_files(name: str) -> str:
    match = _WISH.fullmatch(name)
    if match is None:
        raise ValueError(f"the name of a chunk needs the number of its step and a dash: {name!r}")
    folder, step, rest = match.groups()
    parts = [*(folder or "").split("/"), f"{step}-{rest}"]
    return "/".join(_UNSAFE.sub("_", part)[:_LONGEST] for part in parts if part)


def _serialize(batch: pa.RecordBatch) -> list[bytes | pa.Buffer]:
    metadata = {**(batch.schema.metadata or {}), _FORMAT_KEY: b"%d" % FORMAT_VERSION, _SINCE_KEY: FORMAT_SINCE.encode()}
    marked = batch.replace_schema_metadata(metadata)
    return pieces_written(lambda sink: pa.ipc.new_file(sink, marked.schema, options=_UNCOMPRESSED), marked)


def _batch(data: pa.Buffer, ref: ChunkRef, path: str, *, verified: bool) -> pa.RecordBatch:
    if data.size != ref.bytes:
        raise CheckpointError(
            f"chunk {ref.name} has {data.size} bytes instead of {ref.bytes}", place=path, remedy=_REMEDY
        )
    if not verified and crc32(data) != ref.checksum:
        raise CheckpointError(f"chunk {ref.name} is damaged: its checksum does not match", place=path, remedy=_REMEDY)
    try:
        reader = pa.ipc.open_file(data)
        metadata = dict(reader.schema.metadata or {})
        number, since = int(metadata.pop(_FORMAT_KEY)), metadata.pop(_SINCE_KEY, FIRST).decode()
        if (number, since) != (FORMAT_VERSION, FORMAT_SINCE):
            raise other_format(number, since, path)
        batch = reader.get_batch(0)
        if not verified:
            batch.validate(full=True)  # A checksum says that nothing was damaged, not that nobody meant harm.
        return batch.replace_schema_metadata(metadata or None)
    except (pa.ArrowException, ValueError, LookupError) as error:
        raise CheckpointError(f"chunk {ref.name} cannot be read: {error}", place=path, remedy=_REMEDY) from error


def _lane(data: pa.Buffer, part: LanePart, path: str) -> LaneState:
    if data.size != part.bytes or crc32(data) != part.checksum:
        message = f"lane part {part.name} is damaged: its checksum does not match"
        raise CheckpointError(message, place=path, remedy=_REMEDY)
    try:
        return decode(LaneState, unseal(data.to_pybytes(), path, _REMEDY))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        message = f"lane part {part.name} does not read as what a lane holds: {error!r}"
        raise CheckpointError(message, place=path, remedy=_REMEDY) from error


def pieces_written(open_writer: Callable[[pa.NativeFile], Any], batch: pa.RecordBatch) -> list[bytes | pa.Buffer]:
    """Write a batch in Arrow's form; returns pieces that follow one another, the large ones in the batch's own memory.

    >>> batch = pa.record_batch({"k": [1, 2]})
    >>> pieces = pieces_written(lambda sink: pa.ipc.new_stream(sink, batch.schema), batch)
    >>> pa.ipc.open_stream(b"".join(pieces)).read_next_batch().to_pydict()
    {'k': [1, 2]}
    """
    sink = _Pieces()
    with open_writer(pa.PythonFile(sink, mode="w")) as writer:
        writer.write_batch(batch)
    return sink.pieces


class _Pieces:
    """A file for Arrow that keeps what it is given, without a copy of what Arrow has as a buffer."""

    closed = False

    def __init__(self) -> None:
        self.pieces: list[bytes | pa.Buffer] = []
        self.write = self.pieces.append
