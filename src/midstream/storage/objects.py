"""A part of a bucket as a storage, through `obstore`: Amazon S3 and what speaks like it, Google Cloud, Azure."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from midstream.model.errors import ReadError, SinkError, WriteError
from midstream.model.extras import install
from midstream.storage.chunk_cache import ChunkCache
from midstream.storage.process_resources import RESOURCES
from midstream.storage.storage_contract import Storage

if TYPE_CHECKING:
    from midstream.storage.disk import Bytes

SCHEMES = ("s3", "s3a", "gs", "az", "abfs", "abfss")
"""The schemes of URLs that name a bucket."""

PATIENCE = "MIDSTREAM_STORE_PATIENCE"
"""The environment's name for how many seconds a request is made again that the store does not answer."""

AT_ONCE = 8
_DEFAULT_PATIENCE = 60
_PROBE = "_staging/.probe"
_MARK = "writer"
"""The attribute that says which call has put an object that may be put only once."""

_LONGEST_REQUEST = "120s"
_PART = 64 << 20
"""Bytes from which on an object is sent in parts, which takes three requests more."""

_ENDPOINTS = (
    "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT", "AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT",
    "GOOGLE_BASE_URL",
)  # fmt: skip
_CLIENT = "client of a bucket"
_EPOCH = datetime.fromtimestamp(0, UTC)
_URL = re.compile(r"([a-z0-9]+)://([^/?#]+)(/[^?#]*)?")
_STATUS = re.compile(r"status code: (\d+[ A-Za-z]*)")
_NO_BUCKET = "NoSuchBucket"
_CODE = re.compile(r"<Code>(\w+)</Code>")
_FULL = re.compile("Quota|StorageFull")

_T = TypeVar("_T")
_Fault = TypeVar("_Fault", ReadError, WriteError)


class ObjectStorage(Storage):
    """The objects of a bucket whose names begin with a prefix, as `s3://bucket/prefix`.

    Credentials, region and endpoint are those of the environment it is used in, under the names that the provider's
    own tools use (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`, ...): so no manifest, log or task carries them. `create` is
    a conditional put, which is atomic on all of these stores. There are no folders here, only names that begin alike.
    Files that never change are read through a cache on this machine's disk.
    """

    at_once = AT_ONCE
    renames_folders = False

    def __init__(self, url: str) -> None:
        found = _URL.fullmatch(url)
        if found is None or ":" in found[2]:
            # It is not shown: it may hold a key.
            raise SinkError(
                "the URL does not name a prefix in a bucket",
                place=f"{url.partition('://')[0]}://...",
                remedy="write s3://bucket/prefix; put credentials into the environment (AWS_ACCESS_KEY_ID)",
            )
        self._bucket = f"{found[1]}://{found[2]}"
        self._prefix = "/".join(filter(None, (found[3] or "").split("/")))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectStorage) and self.url == other.url

    def __hash__(self) -> int:
        return hash(self.url)

    @property
    def url(self) -> str:
        """The URL of bucket and prefix."""
        return f"{self._bucket}/{self._prefix}" if self._prefix else self._bucket

    def at(self, folder: str) -> ObjectStorage:
        """Return the storage of the objects whose names continue with a folder."""
        return ObjectStorage(f"{self.url}/{folder}") if folder else self

    def prepare(self) -> None:
        """Put an object and delete it."""
        self.write(_PROBE, b"")
        self.remove([_PROBE])

    def write(self, name: str, data: Bytes) -> None:
        """Put the object."""
        self._writing(name, lambda: _library().put(self._store, self._key(name), _bytes(data), chunk_size=_PART))

    def create(self, name: str, data: Bytes) -> bool:
        """Put the object on condition that there is none.

        A request that got no answer is made again, and then the object may be there by the first: its mark tells.
        """
        mark = secrets.token_hex(8)

        def put() -> bool:
            try:
                _library().put(self._store, self._key(name), _bytes(data), mode="create", attributes={_MARK: mark})
            except _exceptions().AlreadyExistsError:
                return self._mark(name) == mark
            return True

        return self._writing(name, put)

    def read(self, name: str) -> pa.Buffer:
        """Get the object."""
        return self._reading(name, lambda: pa.py_buffer(_library().get(self._store, self._key(name)).bytes()))

    def mapped(self, name: str) -> pa.Buffer:
        """Read the object as a mapped file of the cache."""
        cached, place = ChunkCache.here(), self.place(name)
        return cached.get(place) or cached.filled(place, self.read(name))

    def keep_copy(self, name: str, data: Bytes) -> None:
        """Put it into the cache."""
        ChunkCache.here().put(self.place(name), data)

    def is_near(self, name: str) -> bool:
        """Return whether the cache has the object."""
        return ChunkCache.here().has(self.place(name))

    def drop_copy(self, name: str) -> bool:
        """Remove it from the cache."""
        return ChunkCache.here().drop(self.place(name))

    def names(self, folder: str = "") -> list[str]:
        """List a prefix up to the next slash."""

        listed = self._level(folder)
        paths = [*(one["path"] for one in listed["objects"]), *listed["common_prefixes"]]
        return [_last(path) for path in paths]

    def changed(self, folder: str = "") -> list[tuple[int, str]]:
        """List a prefix up to the next slash; the times are the store's."""
        return [(_nanoseconds(one["last_modified"]), _last(one["path"])) for one in self._level(folder)["objects"]]

    def names_after(self, folder: str, name: str) -> list[str]:
        """List from there on: a request whose answer is as long as what came since."""
        prefix = self._key(folder)
        found = self._listed(folder, f"{prefix}/{name}" if prefix else name)
        return list(dict.fromkeys(path[len(prefix) + 1 if prefix else 0 :].partition("/")[0] for path, _ in found))

    def walk(self, folder: str = "") -> Iterator[tuple[str, int]]:
        """List a prefix, a thousand objects at a time."""
        own = len(self._prefix) + 1 if self._prefix else 0
        yield from ((path[own:], size) for path, size in self._listed(folder))

    def remove(self, names: Iterable[str]) -> None:
        """Delete many at once."""
        keys = [self._key(name) for name in names]

        def delete() -> None:
            try:
                _library().delete(self._store, keys)
            except FileNotFoundError:
                return

        if keys:
            self._writing("", delete)

    def remove_folder(self, folder: str) -> None:
        """Delete every object whose name begins so."""
        self.remove([name for name, _ in self.walk(folder)])

    def move(self, source: str, target: str) -> None:
        """Copy and delete."""
        self._copy(source, target)
        self.remove([source])

    def move_folder(self, source: str, target: str) -> bool:
        """Copy every object, then delete: a reader may see a part of it first."""
        if self.names(target):
            return False
        names = [name[len(source) + 1 :] for name, _ in self.walk(source)]
        self.copy_all({f"{source}/{name}": f"{target}/{name}" for name in names})
        self.remove(f"{source}/{name}" for name in names)
        return True

    def copy_all(self, copies: Mapping[str, str]) -> None:
        """Have the store copy several at the same time."""
        with ThreadPoolExecutor(self.at_once) as threads:
            list(threads.map(lambda copy: self._copy(*copy), copies.items()))

    def exists(self, name: str) -> bool:
        """Ask for the object's head."""

        def head() -> bool:
            try:
                _library().head(self._store, self._key(name))
            except FileNotFoundError:
                return False
            return True

        return self._reading(name, head)

    def _mark(self, name: str) -> str:
        try:
            return str(_library().get(self._store, self._key(name)).attributes.get(_MARK, ""))
        except FileNotFoundError:
            return ""

    def _copy(self, source: str, target: str) -> None:
        def copy() -> None:
            try:
                _library().copy(self._store, self._key(source), self._key(target))
            except FileNotFoundError as error:
                raise error if _code(error) == _NO_BUCKET else _Gone from None

        try:
            self._writing(target, copy)
        except _Gone:
            raise FileNotFoundError(self.place(source)) from None

    def _level(self, folder: str) -> Any:
        def found() -> Any:
            prefix = self._key(folder)
            return _library().list_with_delimiter(self._store, f"{prefix}/" if prefix else None)

        return self._reading(folder, found)

    def _listed(self, folder: str, offset: str | None = None) -> list[tuple[str, int]]:
        def found() -> list[tuple[str, int]]:
            prefix = self._key(folder)
            batches = _library().list(self._store, f"{prefix}/" if prefix else None, offset=offset, chunk_size=1000)
            return [(one["path"], int(one["size"])) for batch in batches for one in batch]

        return self._reading(folder, found)

    @property
    def _store(self) -> Any:
        return RESOURCES.once((_CLIENT, self._bucket), lambda: _client(self._bucket))

    def _key(self, name: str) -> str:
        return "/".join(filter(None, (self._prefix, name)))

    def _writing(self, name: str, act: Callable[[], _T]) -> _T:
        try:
            return act()
        except (FileNotFoundError, _exceptions().BaseError) as error:
            raise self._fault(WriteError, "write", error, name) from None  # Its own text quotes requests.

    def _reading(self, name: str, act: Callable[[], _T]) -> _T:
        try:
            return act()
        except FileNotFoundError as error:
            if _code(error) != _NO_BUCKET:
                raise FileNotFoundError(self.place(name)) from None
            raise self._fault(ReadError, "read", error, name) from None
        except _exceptions().BaseError as error:
            raise self._fault(ReadError, "read", error, name) from None

    def _fault(self, kind: type[_Fault], doing: str, error: Exception, name: str) -> _Fault:
        # What was wrong may be mended by the next request, if that looks for it anew.
        RESOURCES.forget((_CLIENT, self._bucket))
        status, code = _STATUS.search(str(error)), _code(error)
        said = "the store does not answer"
        if status is not None or code:
            said = f"the store says {' '.join(filter(None, (status[1].strip() if status else '', code)))}"
        refused = status is not None and status[1][:3] in ("401", "403")
        remedy = "see that the store can be reached from this machine"
        if isinstance(error, FileNotFoundError) or code == _NO_BUCKET:
            remedy = "make the bucket, or name another"
        elif _FULL.search(code) or (status is not None and status[1].startswith("507")):
            remedy = "free some space there, or have the quota raised"
        elif "TimeTooSkewed" in code:
            remedy = "set the clock of this machine right: the store takes no request that is dated otherwise"
        elif refused or "redential" in str(error):
            remedy = "give this machine credentials that may read and write there, by the environment"
        remedy += "; a job that still runs then goes on"
        return kind(f"cannot {doing}: {said}", place=self.place(name), remedy=remedy)


class _Gone(Exception):
    """What was to be copied is not there."""


def _bytes(data: Bytes) -> memoryview:
    # The library takes unsigned bytes only.
    return memoryview(b"".join(data) if isinstance(data, tuple) else data).cast("B")


def _last(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _nanoseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def _code(error: Exception) -> str:
    found = _CODE.search(str(error))
    return found[1] if found else ""


def _library() -> Any:
    try:
        import obstore
    except ImportError:
        raise SinkError(
            "object stores need a library that is not installed",
            place="obstore",
            remedy=f"{install('stores')}, on every machine",
        ) from None
    return obstore


def _exceptions() -> Any:
    _library()
    import obstore.exceptions

    return obstore.exceptions


def _client(bucket: str) -> Any:
    _library()
    from obstore.store import from_url

    patience = os.environ.get(PATIENCE, str(_DEFAULT_PATIENCE))
    if not patience.isdigit():
        raise SinkError(f"{PATIENCE} is {patience!r}", place="environment", remedy="give a number of seconds")
    unencrypted = any(os.environ.get(name, "").startswith("http://") for name in _ENDPOINTS)
    return from_url(
        bucket,
        client_options={"timeout": _LONGEST_REQUEST, "connect_timeout": "5s", "allow_http": unencrypted},
        retry_config={"max_retries": 1000, "retry_timeout": timedelta(seconds=int(patience))},
    )
