"""A store on which everything goes wrong by a seed: a file system, or an object store that is asked over a network.

Every request is a moment at which the driver that makes it may die, before or after it took effect, be answered that it
failed though it did not, or be suspended while others run. Beyond that
- a file system leaves half a file where a write is broken off, and may carry out a request twice, as one that is
  mounted over a network does;
- an object store may carry out a request twice, where the client asked again because no answer came, and may carry out
  one that the client has given up long ago, after any number of others: also one of a driver that is dead.
No part of an object is ever seen: that is what object stores promise.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from obstore.exceptions import AlreadyExistsError, GenericError

from midstream.model.errors import ReadError, WriteError
from midstream.storage.local import TEMPORARY
from midstream.storage.objects import ObjectStorage
from midstream.storage.storage_contract import Storage

if TYPE_CHECKING:
    from midstream.storage.disk import Bytes

T = TypeVar("T")
Change = Callable[[], T]
"""What a request does to the files."""

ARRIVES = 60
"""Of a thousand requests, those before which one arrives that was given up."""


class Killed(BaseException):
    """The driver is gone: not an Exception, so nothing may handle it."""


@dataclass
class World:
    """What is left when everybody is dead: the files, and requests that are still on their way.

    `dangers` is how many requests in a thousand go wrong; `objects` says whether it is an object store. `meanwhile` is
    what happens to the world while a driver is suspended.
    """

    chance: random.Random
    inputs: int
    dangers: int
    objects: bool = False
    meanwhile: Callable[[World], None] = lambda world: None
    files: dict[str, bytes] = field(default_factory=dict)
    attributes: dict[str, dict[str, str]] = field(default_factory=dict)
    late: list[Change[Any]] = field(default_factory=list)
    depth: int = 0
    commands: int = 0
    accepted: list[int] = field(default_factory=list)
    happened: dict[str, int] = field(default_factory=dict)

    def note(self, what: str) -> None:
        """Count what the seed brought about."""
        self.happened[what] = self.happened.get(what, 0) + 1

    def ask(self, answer: Change[T]) -> T:
        """A request that changes nothing."""
        self._before(("killed", "failed", "suspended", "suspended"), None)
        return answer()

    def change(self, change: Change[T], torn: Change[object] | None = None) -> T:
        """A request that changes files; `torn` is what half of it does."""
        dangers = ("killed", "failed", "suspended", "suspended", "repeated")
        if self.objects:
            dangers += ("given up", "given up", "given up", "killed on the way", "overtaken", "overtaken")
        elif torn is not None:
            dangers += ("torn", "torn")
        what = self._before(dangers, torn)
        if what in ("given up", "killed on the way", "overtaken"):
            self.late.append(change)
            if what == "given up":
                raise GenericError("operation timed out")
            if what == "killed on the way":
                raise Killed
        answer = change()
        if what == "repeated":
            answer = change()
        if self.chance.randrange(1000) < self.dangers // 2:
            what = self.chance.choice(("killed after", "answer lost"))
            self.note(what)
            if what == "killed after":
                raise Killed
            raise self.failure()
        return answer

    def arrive(self) -> None:
        """Carry out one of the requests that were given up."""
        late = self.late.pop(self.chance.randrange(len(self.late)))
        try:
            late()
            self.note("arrived late")
        except (FileNotFoundError, AlreadyExistsError):
            self.note("arrived in vain")

    def failure(self) -> Exception:
        """What the caller of a request sees that failed."""
        if self.objects:
            return GenericError("status code: 503 Service Unavailable")
        return WriteError("cannot write: Input/output error", place="the disk", remedy="mend it")

    def _before(self, dangers: tuple[str, ...], torn: Change[object] | None) -> str:
        if self.late and self.chance.randrange(1000) < ARRIVES:
            self.arrive()
        if self.chance.randrange(1000) >= self.dangers:
            return ""
        what = self.chance.choice(dangers)
        if what == "suspended" and self.depth >= 2:
            return ""
        self.note(what)
        if what == "killed":
            raise Killed
        if what == "failed":
            raise self.failure()
        if what == "torn" and torn is not None:
            torn()
            if self.chance.random() < 0.5:
                raise Killed
            raise self.failure()
        if what == "suspended":
            self.depth += 1
            for _ in range(self.chance.randrange(1, 3)):
                self.meanwhile(self)
            self.depth -= 1
        return what

    def at(self, prefix: str) -> Storage:
        """The part of it whose names begin so."""
        return SimulatedBucket(self, prefix) if self.objects else SimulatedFolder(self, prefix)


def _whole(data: Bytes) -> bytes:
    return b"".join(data) if isinstance(data, tuple) else bytes(data)


class SimulatedFolder(Storage):
    """Files of a world below a folder: written beside their place and renamed, as `LocalStorage` does."""

    def __init__(self, world: World, prefix: str) -> None:
        self.world, self.prefix, self.files = world, prefix, world.files

    @property
    def url(self) -> str:
        return self.prefix

    def at(self, folder: str) -> SimulatedFolder:
        return SimulatedFolder(self.world, self._path(folder))

    def prepare(self) -> None:
        return

    def write(self, name: str, data: Bytes) -> None:
        try:
            self._renamed(self._written(name, _whole(data)), self._path(name))
        except FileNotFoundError as error:
            raise self.world.failure() from error

    def create(self, name: str, data: Bytes) -> bool:
        temporary, path = self._written(name, _whole(data)), self._path(name)
        linked: set[str] = set()

        def link() -> bool:
            """Asked twice, it finds by the links of the file that it has done it."""
            if path not in self.files:
                if temporary not in self.files:  # Another driver has tidied while this one was suspended.
                    raise self.world.failure()
                self.files[path] = self.files[temporary]
                linked.add(path)
            return path in linked

        put = self.world.change(link)
        self.files.pop(temporary, None)
        return put

    def read(self, name: str) -> pa.Buffer:
        def found() -> pa.Buffer:
            try:
                return pa.py_buffer(self.files[self._path(name)])
            except KeyError:
                raise FileNotFoundError(name) from None

        return self._reading(found)

    def names(self, folder: str = "") -> list[str]:
        prefix = f"{self._path(folder)}/"
        found = {path[len(prefix) :].partition("/")[0] for path in self._reading(lambda: self._below(prefix))}
        return sorted(name for name in found if not name.endswith(TEMPORARY))

    def changed(self, folder: str = "") -> list[tuple[int, str]]:
        raise NotImplementedError("a checkpoint is read by names alone")

    def walk(self, folder: str = "") -> Iterator[tuple[str, int]]:
        prefix, own = f"{self._path(folder)}/", len(self.prefix) + 1
        return iter([(path[own:], len(self.files[path])) for path in self._reading(lambda: self._below(prefix))])

    def remove(self, names: Iterable[str]) -> None:
        for name in list(names):
            path = self._path(name)
            self.world.change(lambda path=path: self.files.pop(path, None))  # type: ignore[misc]

    def remove_folder(self, folder: str) -> None:
        self.remove([name for name, _ in self.walk(folder)])

    def move(self, source: str, target: str) -> None:
        self._renamed(self._path(source), self._path(target))

    def move_folder(self, source: str, target: str) -> bool:
        old, new = f"{self._path(source)}/", f"{self._path(target)}/"

        def rename() -> bool:
            if self._below(new):
                return False
            for path in self._below(old):
                self.files[new + path[len(old) :]] = self.files.pop(path)
            return True

        return self.world.change(rename)

    def tidy(self, folder: str = "") -> None:
        prefix = f"{self._path(folder)}/"
        for path in self._below(prefix):
            if path.endswith(TEMPORARY) and "/" not in path[len(prefix) :]:
                del self.files[path]

    def _written(self, name: str, data: bytes) -> str:
        folder, _, last = self._path(name).rpartition("/")
        temporary = f"{folder}/.{last}.{self.world.chance.randrange(1 << 32)}{TEMPORARY}"

        def put(part: bytes) -> None:
            self.files[temporary] = part

        self.world.change(lambda: put(data), torn=lambda: put(data[: len(data) // 2]))
        return temporary

    def _renamed(self, source: str, target: str) -> None:
        def rename() -> None:
            try:
                self.files[target] = self.files.pop(source)
            except KeyError:
                raise FileNotFoundError(source) from None

        self.world.change(rename)

    def _reading(self, answer: Change[T]) -> T:
        try:
            return self.world.ask(answer)
        except WriteError as error:
            raise ReadError("cannot read: Input/output error", place=self.url, remedy="mend it") from error

    def _below(self, prefix: str) -> list[str]:
        return [path for path in list(self.files) if path.startswith(prefix)]

    def _path(self, name: str) -> str:
        return "/".join(filter(None, (self.prefix, name)))


class SimulatedBucket(ObjectStorage):
    """The storage of object stores, as it is, over a client library that is simulated."""

    def __init__(self, world: World, prefix: str) -> None:
        super().__init__(f"s3://world/{prefix}")
        self.world = world

    def at(self, folder: str) -> SimulatedBucket:
        return SimulatedBucket(self.world, self._key(folder))

    def mapped(self, name: str) -> pa.Buffer:
        return self.read(name)

    def keep_copy(self, name: str, data: Bytes) -> None:
        return

    def copy_all(self, copies: Mapping[str, str]) -> None:
        for source, target in copies.items():  # One after the other, for a seed brings about the same every time.
            self._copy(source, target)

    @property
    def at_once(self) -> int:  # type: ignore[override]
        return 1

    @property
    def _store(self) -> Any:
        return self.world


class SimulatedLibrary:
    """As much of `obstore` as the storage of object stores uses; the store is a world."""

    @staticmethod
    def put(
        world: World,
        key: str,
        data: memoryview,
        *,
        mode: str = "overwrite",
        chunk_size: int = 0,
        attributes: dict[str, str] | None = None,
    ) -> None:
        held = bytes(data)

        def put() -> None:
            if mode == "create" and key in world.files:
                raise AlreadyExistsError(key)
            world.files[key], world.attributes[key] = held, attributes or {}

        world.change(put)

    @staticmethod
    def get(world: World, key: str) -> Any:
        found = world.ask(lambda: SimulatedLibrary._object(world, key))
        return SimpleNamespace(bytes=lambda: found, attributes=world.attributes[key])

    @staticmethod
    def head(world: World, key: str) -> None:
        world.ask(lambda: SimulatedLibrary._object(world, key))

    @staticmethod
    def list_with_delimiter(world: World, prefix: str | None) -> Any:
        own = len(prefix or "")
        below = world.ask(lambda: [key for key in world.files if key.startswith(prefix or "")])
        folders = sorted({key[: key.index("/", own) + 1] for key in below if "/" in key[own:]})
        return {"objects": [{"path": key} for key in below if "/" not in key[own:]], "common_prefixes": folders}

    @staticmethod
    def delete(world: World, keys: Sequence[str]) -> None:
        for key in keys:  # Of many that are deleted by one request, some may be gone and others not.
            world.change(lambda key=key: world.files.pop(key, None))  # type: ignore[misc]

    @staticmethod
    def copy(world: World, source: str, target: str) -> None:
        def copy() -> None:
            world.files[target] = SimulatedLibrary._object(world, source)
            world.attributes[target] = world.attributes.get(source, {})

        world.change(copy)

    @staticmethod
    def _object(world: World, key: str) -> bytes:
        try:
            return world.files[key]
        except KeyError:
            raise FileNotFoundError(key) from None

    @staticmethod
    def list(world: World, prefix: str | None, *, offset: str | None = None, chunk_size: int = 0) -> Any:
        def found() -> Any:
            keys = sorted(key for key in world.files if key.startswith(prefix or "") and key > (offset or ""))
            return [[{"path": key, "size": len(world.files[key])} for key in keys]]

        return world.ask(found)
