"""How a checkpoint's files are written and read: whole or not at all, sealed with their format and a checksum."""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

from midstream.model.errors import CheckpointError, OtherFormatError, ReadError, WriteError
from midstream.model.manifest import FORMAT_SINCE, FORMAT_VERSION

if TYPE_CHECKING:
    import pyarrow as pa

    Bytes: TypeAlias = bytes | pa.Buffer | tuple[bytes | pa.Buffer, ...]
    """The content of a file to write; the pieces of a tuple follow one another."""

try:
    from isal.isal_zlib import crc32 as _crc32
except ImportError:
    from zlib import crc32 as _crc32


def crc32(data: Any, start: int = 0) -> int:
    """Compute the CRC-32 of bytes or a buffer; `start` is that of the bytes before.

    >>> crc32(b"midstream")
    3126050436
    """
    return int(_crc32(data, start))


NewName = Callable[[str], None]
"""Called with a folder that has a new name in it, which shall survive the loss of power."""

_HOST = secrets.token_hex(4)
_NUMBERS = count()
_HEAD = b'{"midstream":"%b","format":%d' % (FORMAT_SINCE.encode(), FORMAT_VERSION)
_SEAL = re.compile(rb'(\{[^{}]{1,80}),"crc32":"([0-9a-f]{8})","value":(.*)\}\n', re.DOTALL)
_ANY_HEAD = re.compile(rb'\{(?:"midstream":"([\w.+-]{1,40})",)?"format":(\d{1,9})(?=,"crc32":")')
_ENCODER = json.JSONEncoder(separators=(",", ":"), check_circular=False)
_SPACE = "free some space there; a job that still runs then goes on, else start it again"
_RIGHTS = "let this user write there, or name another folder; a job that still runs then goes on"
_FOLDER = "name a folder: a part of this path is a file"
_REMEDIES = {
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EFBIG: "raise the limit on the size of files and start again",
    errno.EACCES: _RIGHTS,
    errno.EPERM: _RIGHTS,
    errno.EROFS: _RIGHTS,
    errno.ENOTDIR: _FOLDER,
    errno.EEXIST: _FOLDER,
    errno.EMFILE: "raise the limit on open files (ulimit -n) and start again",
    errno.ENAMETOOLONG: "name a folder with a shorter path, or shorten the name",
}


def cannot_write(error: OSError, path: str) -> WriteError:
    """Return the error to raise where the operating system does not let a file be written."""
    remedy = _REMEDIES.get(error.errno or 0, "check the folder and the disk, then start again")
    return WriteError(f"cannot write: {error.strerror or error}", place=path, remedy=remedy)


def cannot_read(error: OSError, path: str) -> ReadError:
    """Return the error to raise where the operating system does not let a file be read."""
    return ReadError(f"cannot read: {error.strerror or error}", place=path, remedy="check the path and its permissions")


class Writing:
    """Raise `cannot_write` where the operating system does not let the `with` block write to `path`."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise cannot_write(error, self._path) from error


def write_temporary(path: str, data: Bytes, *, fsync: bool = False, new_name: NewName | None = None) -> str:
    """Write a new hidden file next to `path`, creating its folder if needed; returns the new file's path.

    Its name is `.<name>.<host>-<process>-<number>.tmp`, so no two writers meet. It is gone again if the write fails.
    """
    folder, _, name = path.rpartition("/")
    temporary = f"{folder}/.{name}.{_HOST}-{os.getpid()}-{next(_NUMBERS)}.tmp"
    handle = _create(temporary, folder, new_name)
    try:
        try:
            for piece in data if isinstance(data, tuple) else (data,):
                rest = memoryview(piece)
                while rest:
                    rest = rest[os.write(handle, rest) :]
            if fsync:
                os.fsync(handle)
        finally:
            os.close(handle)
    except BaseException:
        discard(temporary)
        raise
    return temporary


def write_whole(path: str, data: Bytes, *, fsync: bool = False, new_name: NewName | None = None) -> None:
    """Put a file in place atomically: a reader sees the old file, or none, or the whole new one.

    With `fsync` it also survives the loss of power, unless the names of files and folders are left to `new_name`.
    Raises `WriteError`; then nothing has changed.
    """
    if new_name is None and fsync:
        new_name = sync
    try:
        temporary = write_temporary(path, data, fsync=fsync, new_name=new_name)
        try:
            os.replace(temporary, path)
        except BaseException:
            discard(temporary)
            raise
        if new_name is not None:
            new_name(path.rpartition("/")[0])
    except OSError as error:
        raise cannot_write(error, path) from error


def sync(path: str) -> None:
    """Make what was written to a file, or the names in a folder, survive the loss of power."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(folder: str) -> None:
    """Make everything in a folder, except its own name, survive the loss of power."""
    for inner, _, names in os.walk(folder):
        for name in names:
            sync(f"{inner}/{name}")
        sync(inner)


def is_own_folder(path: str) -> bool:
    """Return whether a path is free, or is a folder of this user's and no link."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return True
    except OSError as error:
        raise cannot_read(error, path) from error
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def discard(path: str) -> None:
    """Remove a file if it is there and can be removed."""
    with suppress(OSError):
        os.unlink(path)


def names_in(folder: str) -> list[str]:
    """List the names in a folder; none where it does not exist yet."""
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise cannot_read(error, folder) from error


def seal(value: Any) -> bytes:
    r"""Encode a JSON value as a file's bytes: one JSON object with the format, and a checksum of both.

    >>> seal({"step": 3})
    b'{"midstream":"0.2.0","format":1,"crc32":"5416c8f5","value":{"step":3}}\n'
    """
    body = _ENCODER.encode(value).encode()
    return b'%b,"crc32":"%08x","value":%b}\n' % (_HEAD, crc32(body, crc32(_HEAD)), body)


def unseal(data: bytes, path: str, remedy: str) -> Any:
    """Decode what `seal` wrote; `path` and `remedy` are for the `CheckpointError` of a damaged file."""
    check_format(data, path)
    match = _SEAL.fullmatch(data)
    if match is None or crc32(match[3], crc32(match[1])) != int(match[2], 16):
        raise CheckpointError("the file is damaged: its checksum does not match", place=path, remedy=remedy)
    try:
        return json.loads(match[3])
    except (ValueError, RecursionError) as error:
        message = f"the file does not read as JSON: {type(error).__name__}"
        raise CheckpointError(message, place=path, remedy=remedy) from error


FIRST = b"0.1.0"
"""The version whose files name a format only."""


def check_format(data: bytes, path: str) -> None:
    """Raise where a file begins as `seal` begins it in another format; does not check for damage."""
    head = _ANY_HEAD.match(data)
    if head is not None and head[0] != _HEAD:
        raise other_format(int(head[2]), (head[1] or FIRST).decode(), path)


def other_format(number: int, since: str, path: str) -> OtherFormatError:
    """Return the error to raise for a file of another format, which midstream `since` introduced."""
    return OtherFormatError(
        f"the file has format {number} of midstream {since}, but this version reads format {FORMAT_VERSION} of "
        f"midstream {FORMAT_SINCE}",
        place=path,
        remedy=f"use midstream {since}, which can read the file, or begin with another checkpoint",
    )


def _create(path: str, folder: str, new_name: NewName | None) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
    for _ in range(8):
        with suppress(FileNotFoundError):
            return os.open(path, flags, 0o666)
        # The sweep may take an empty folder away between these two lines, hence the loop.
        make_folder(folder, new_name)
    return os.open(path, flags, 0o666)


def make_folder(folder: str, new_name: NewName | None = None) -> None:
    """Create a folder and its parents; calls `new_name` with the parent of each new folder."""
    missing, outer = list[str](), folder
    while new_name is not None and outer and not os.path.isdir(outer):
        missing.append(outer)
        outer = os.path.dirname(outer)
    os.makedirs(folder, exist_ok=True)
    if new_name is not None:
        for one in missing:
            new_name(os.path.dirname(one))
