"""Messages between an engine and its workers: small values by a socket, columns in memory that both map.

That memory has no name: it is gone when neither process maps it any more, however they end. Messages are pickled, as
`multiprocessing` does it; the socket is a pair that nobody else can open, and nothing of a checkpoint is read so.
"""

from __future__ import annotations

import errno
import io
import mmap
import os
import socket
import struct
from collections.abc import Sequence
from multiprocessing.reduction import ForkingPickler
from typing import Any

_HEAD = struct.Struct("<QI")
"""The bytes of a message, and the number of its buffers."""

_ALIGNED = 64


class Channel:
    """One end of a pair of sockets."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    @staticmethod
    def pair() -> tuple[Channel, socket.socket]:
        """Make a channel, and the socket to give to the other process."""
        own, other = socket.socketpair()
        return Channel(own), other

    def close(self) -> None:
        """Close this end, by which the other process ends."""
        self._end.close()

    def send(self, value: Any) -> None:
        """Send a value; raises `ConnectionError` where the other process is gone, and any other error before that."""
        buffers: list[Any] = []
        body = io.BytesIO()
        ForkingPickler(body, 5, True, buffers.append).dump(value)
        views = [buffer.raw() for buffer in buffers]
        sizes = struct.pack(f"<{len(views)}Q", *(view.nbytes for view in views))
        head = _HEAD.pack(body.tell(), len(views))
        memory = _memory(views)
        try:
            sent = socket.send_fds(self._end, [head], [] if memory is None else [memory])
            self._end.sendall(head[sent:])
        finally:
            if memory is not None:
                os.close(memory)
        self._end.sendall(sizes)
        self._end.sendall(body.getbuffer())

    def receive(self) -> Any:
        """Wait for a value; raises `EOFError` or `ConnectionError` where the other process is gone."""
        head, memories, _, _ = socket.recv_fds(self._end, _HEAD.size, 1, socket.MSG_CMSG_CLOEXEC)
        try:
            head += self._bytes(_HEAD.size - len(head))
            length, count = _HEAD.unpack(head)
            sizes = struct.unpack(f"<{count}Q", self._bytes(8 * count))
            body = self._bytes(length)
            buffers = _buffers(memories[0] if memories else None, sizes)
        finally:
            for memory in memories:
                os.close(memory)
        return ForkingPickler.loads(body, buffers=buffers)

    def _bytes(self, length: int) -> bytes:
        found = bytearray(length)
        rest = memoryview(found)
        while rest:
            count = self._end.recv_into(rest)
            if not count:
                raise EOFError("the other process has ended")
            rest = rest[count:]
        return bytes(found)


def _memory(views: Sequence[memoryview]) -> int | None:
    # A file without a name that has all views, each at a multiple of `_ALIGNED`; None for no bytes.
    if not any(view.nbytes for view in views):
        return None
    memory = os.memfd_create("midstream")
    try:
        at = 0
        for view in views:
            rest, begin = view, at
            while rest:
                written = os.pwrite(memory, rest, begin)
                rest, begin = rest[written:], begin + written
            at += _span(view.nbytes)
        os.ftruncate(memory, at)
    except BaseException:
        os.close(memory)
        raise
    return memory


def _buffers(memory: int | None, sizes: Sequence[int]) -> list[memoryview]:
    if memory is None:
        if any(sizes):  # The system leaves a descriptor out where this process may have no more.
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return [memoryview(b"")] * len(sizes)
    flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
    whole = memoryview(mmap.mmap(memory, sum(map(_span, sizes)), flags=flags, prot=mmap.PROT_READ))
    found, at = [], 0
    for size in sizes:
        found.append(whole[at : at + size])
        at += _span(size)
    return found


def _span(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED
