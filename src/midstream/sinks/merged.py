"""Results of a sink of files, merged into few, next to its folder, which stays as it is.

A folder of steps cannot be merged in place under a reader's eyes: who lists files meets, for a moment, rows twice or
not at all. So what is merged is put into a folder next to it, `PATH.merged`, and only names change there: `_parts` has
files that never change, `_log` numbered lists of them, of which the newest counts; a number is given once, as in the
log of a Delta table (Armbrust et al., Delta Lake, VLDB 2020, Section 3). On a file system `current` leads to a folder
of the newest list's files, and is turned to another by one rename.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from midstream.model.time_line import Stamp
from midstream.storage.disk import Writing
from midstream.storage.local import LocalStorage
from midstream.storage.places import storage_at
from midstream.storage.storage_contract import Storage

if TYPE_CHECKING:
    import pyarrow as pa

    from midstream.storage.disk import Bytes

_ENTRY = re.compile(r"(\d{8,})\.json", re.ASCII)
_PART = re.compile(r"(\d{8,})-[0-9a-f]{8}\.parquet", re.ASCII)
_VIEW = re.compile(r"(\d{8,})(?:-[0-9a-f]{8})?", re.ASCII)
_UNFINISHED = re.compile(r"\.(\d{8,})[-.].+\.tmp", re.ASCII)
"""The names that this module gives; anything else in its folders is not its own and stays."""

LOG, PARTS, VIEWS, CURRENT = "_log", "_parts", "_views", "current"
KEPT = 2
"""Of so many lists the files stay: a reader who found the one before the newest can end."""


@dataclass(frozen=True)
class MergedPart:
    """A file of the rows of all steps from `first` to that of `through`, by its name from the folder's root."""

    file: str
    first: int
    rows: int
    bytes: int
    through: Stamp


@dataclass(frozen=True)
class MergedList:
    """The parts that make up all results up to a step; `number` counts lists, and 0 is that of nothing."""

    number: int = 0
    parts: tuple[MergedPart, ...] = ()

    @property
    def through(self) -> Stamp | None:
        """The last step whose results are in it."""
        return self.parts[-1].through if self.parts else None

    def to_json(self) -> bytes:
        """Encode the list as the log has it."""
        return json.dumps({"parts": [asdict(part) for part in self.parts]}).encode()

    @staticmethod
    def of(number: int, data: bytes | pa.Buffer) -> MergedList:
        """Read a list that `to_json` wrote."""
        return MergedList(number, tuple(_part(one) for one in json.loads(bytes(data))["parts"]))


@dataclass(frozen=True)
class MergedResults:
    """Merged results of a sink of files."""

    storage: Storage

    @staticmethod
    def of(path: str) -> MergedResults:
        """Open the merged results of the sink at a path or a URL."""
        return MergedResults(storage_at(f"{path}.merged"))

    @property
    def current(self) -> str:
        """Return a folder with the newest files, for programs that cannot read midstream's lists of files.

        On an object store, the property returns the whole folder, which also contains the files of older lists.
        """
        return self.storage.place(CURRENT) if isinstance(self.storage, LocalStorage) else self.storage.url

    def newest(self) -> MergedList:
        """Read the newest list."""
        while numbers := self._numbers():
            try:
                return MergedList.of(numbers[-1], self.storage.read(_entry(numbers[-1])))
            except FileNotFoundError:  # Two lists were added since, so there is a newer one.
                continue
        return MergedList()

    def files(self) -> list[str]:
        """Return the path or URL of each file in the newest list, ordered by step."""
        return [self.storage.place(part.file) for part in self.newest().parts]

    def write(self, number: int, data: Bytes) -> str:
        """Write merged results into a file for the list with this number, and return the file's name."""
        name = f"{PARTS}/{number:08d}-{secrets.token_hex(4)}.parquet"
        self.storage.write(name, data)
        return name

    def add(self, number: int, parts: Iterable[MergedPart]) -> bool:
        """Publish `parts` as the newest list, or return False if there already is a list with this number."""
        found = MergedList(number, tuple(parts))
        if not self.storage.create(_entry(number), found.to_json()):
            return False
        self.show()
        with suppress(FileNotFoundError):  # Somebody else has begun to forget the same.
            self._forget_former()
        return True

    def forget_after(self, step: int, given_up: Callable[[Stamp], bool]) -> None:
        """Drop each part that has rows of a given-up step after `step`.

        A step counts as given up if `given_up` accepts its stamp. A later merge reads the other steps of a dropped part
        again, from the steps' own folders.
        """
        while True:
            newest = self.newest()
            stay = kept(newest.parts, lambda stamp: stamp.step <= step or not given_up(stamp))
            if len(stay) == len(newest.parts) or self.add(newest.number + 1, stay):
                return

    def show(self) -> None:
        """Point `current` to the files of the newest list, if the storage has links."""
        if not isinstance(self.storage, LocalStorage):
            return
        shown = None
        while (newest := self.newest()).number != shown:  # Another may have come first and turned it farther.
            shown = newest.number
            if shown:
                self._turn(self.storage, newest)

    def _turn(self, storage: LocalStorage, newest: MergedList) -> None:
        root, view = storage.url, f"{VIEWS}/{newest.number:08d}"
        current, turned = os.path.join(root, CURRENT), os.path.join(root, f"{view}-{secrets.token_hex(4)}")
        # Where a newer list came, twice, and took this one's parts away, it is shown next.
        with Writing(current), suppress(FileNotFoundError):
            if os.path.islink(current) and os.readlink(current) == view:
                return
            os.makedirs(os.path.join(root, view), exist_ok=True)
            for part in newest.parts:
                link = os.path.join(root, view, os.path.basename(part.file))
                with suppress(FileExistsError):  # Of somebody who was killed, or shows the same list.
                    os.link(os.path.join(root, part.file), link)
            storage.settle(view)
            storage.settle(VIEWS)
            os.symlink(view, turned)
            os.replace(turned, current)

    def _forget_former(self) -> None:
        # What no list names that somebody may still read.
        numbers = self._numbers()
        if len(numbers) <= KEPT:
            return
        oldest = numbers[-KEPT]
        entries = [(number, self.storage.read(_entry(number))) for number in numbers[-KEPT:]]
        named = {part.file for number, data in entries for part in MergedList.of(number, data).parts}
        parts = [f"{PARTS}/{name}" for name in self.storage.names(PARTS) if _is_before(oldest, name, _PART)]
        self.storage.remove(_entry(number) for number in numbers[:-KEPT])
        self.storage.remove(part for part in parts if part not in named)
        if isinstance(self.storage, LocalStorage):
            _sweep(self.storage.url, oldest)

    def _numbers(self) -> list[int]:
        return sorted(int(found[1]) for name in self.storage.names(LOG) if (found := _ENTRY.fullmatch(name)))


def _sweep(root: str, oldest: int) -> None:
    # Views before the oldest list, and what merges for it that were killed have left half made.
    gone = {LOG: (_UNFINISHED,), PARTS: (_UNFINISHED,), VIEWS: (_UNFINISHED, _VIEW)}
    for folder, kinds in gone.items():
        for name in os.listdir(os.path.join(root, folder)):
            if any(_is_before(oldest, name, kind) for kind in kinds):
                _remove(os.path.join(root, folder, name))


def _remove(path: str) -> None:
    # As far as it is still there.
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(FileNotFoundError):
        os.unlink(path)


def kept(parts: Sequence[MergedPart], counts: Callable[[Stamp], bool]) -> tuple[MergedPart, ...]:
    """Return the parts before the first whose last step does not count."""
    wrong = next((at for at, part in enumerate(parts) if not counts(part.through)), len(parts))
    return tuple(parts[:wrong])


def _part(value: dict[str, Any]) -> MergedPart:
    return MergedPart(**{**value, "through": Stamp(**value["through"])})


def _entry(number: int) -> str:
    return f"{LOG}/{number:08d}.json"


def _is_before(number: int, name: str, kind: re.Pattern[str]) -> bool:
    found = kind.fullmatch(name)
    return found is not None and int(found[1]) < number
