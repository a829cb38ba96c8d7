"""What makes the object server of the tests keep what it has acknowledged, though it holds all in memory: a journal.

Every request that changes something is written to a file before it is carried out, so a server that is killed and
started again on that file has all that any client was told or shown. It then begins a new file with what is left.
Objects that are sent in parts are not for it: the names of their parts are new each time.
"""

from __future__ import annotations

import io
import os
import pickle
import struct
import threading
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs

CHANGES = ("PUT", "POST", "DELETE")
COMPACTED_FROM = 256 << 20
"""Bytes of a journal from which on it is written anew."""

_LENGTH = struct.Struct(">Q")
_NOT_OF_A_PUT = ("HTTP_IF_NONE_MATCH", "HTTP_IF_MATCH", "HTTP_X_AMZ_COPY_SOURCE", "HTTP_X_AMZ_METADATA_DIRECTIVE")


class Change(NamedTuple):
    """A request that changes something, as a WSGI server hands it on."""

    environ: dict[str, str]
    body: bytes


class Journal:
    """The application between a client and one that forgets."""

    def __init__(self, application: Any, path: Path) -> None:
        self.application, self.path, self.lock = application, path, threading.Lock()
        self.live: dict[str, dict[str, str]] = {}
        if path.exists():
            for change in _changes(path.read_bytes()):
                self._carry_out(change)
        self._compact()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] not in CHANGES:
            return self.application(environ, start_response)  # type: ignore[no-any-return]
        change = Change({k: v for k, v in environ.items() if isinstance(v, str)}, _body(environ))
        with self.lock:
            self._write(change)
            status, headers, answer = self._carry_out(change)
            if self.file.tell() > COMPACTED_FROM:
                self._compact()
        start_response(status, headers)
        return [answer]

    def _carry_out(self, change: Change) -> tuple[str, list[tuple[str, str]], bytes]:
        environ, (status, headers, answer) = change.environ, self._asked(change)
        if status.startswith("2"):
            path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
            if method == "PUT":
                self.live[path] = environ
            elif method == "DELETE":
                self.live.pop(path, None)
            elif "delete" in parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True):
                for key in ET.fromstring(change.body).iter():
                    if key.tag.endswith("Key"):
                        self.live.pop(f"{path.rstrip('/')}/{key.text}", None)
        return status, headers, answer

    def _asked(self, change: Change) -> tuple[str, list[tuple[str, str]], bytes]:
        said: list[Any] = []
        request = {
            **change.environ,
            "CONTENT_LENGTH": str(len(change.body)),
            "wsgi.version": (1, 0),
            "wsgi.input": io.BytesIO(change.body),
            "wsgi.errors": io.StringIO(),
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
        }
        answer = b"".join(self.application(request, lambda status, headers, *_: said.append((status, headers))))
        return said[0][0], said[0][1], answer

    def _compact(self) -> None:
        """Write the journal anew, of what is there."""
        fresh = self.path.with_suffix(".fresh")
        with open(fresh, "wb") as file:
            for environ in list(self.live.values()):
                file.write(_record(self._as_put(environ)))
        os.replace(fresh, self.path)
        self.file = open(self.path, "ab")  # noqa: SIM115

    def _as_put(self, environ: dict[str, str]) -> Change:
        """The request that would make what is there now."""
        plain = {name: value for name, value in environ.items() if name not in _NOT_OF_A_PUT}
        if environ["PATH_INFO"].strip("/").count("/") == 0:
            return Change(plain, b"")  # A bucket.
        _, headers, held = self._asked(Change({**plain, "REQUEST_METHOD": "GET"}, b""))
        marks = {f"HTTP_{n.upper().replace('-', '_')}": v for n, v in headers if n.lower().startswith("x-amz-meta-")}
        return Change({**plain, **marks}, held)

    def _write(self, change: Change) -> None:
        self.file.write(_record(change))
        self.file.flush()  # It has left the process: killing that loses nothing.


def _record(change: Change) -> bytes:
    data = pickle.dumps(tuple(change))
    return _LENGTH.pack(len(data)) + data


def _changes(data: bytes) -> Iterator[Change]:
    """All whole records; one that was broken off was never carried out."""
    at = 0
    while len(data) - at >= _LENGTH.size:
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        if len(data) - at < length:
            return
        yield Change(*pickle.loads(data[at : at + length]))
        at += length


def _body(environ: dict[str, Any]) -> bytes:
    if environ.get("wsgi.input_terminated"):
        return bytes(environ["wsgi.input"].read())
    return bytes(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
