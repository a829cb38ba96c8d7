"""A manifest in a file: written, and read with care.

A file has a manifest whole, or what differs from the one in another file, which it names with its checksum.

A manifest lists every chunk of every lane and every query, of which a step changes few. So most files of a large one
hold a difference, and what is written goes with what changed. Of the files since a whole one, number n differs from
number n without its lowest bit: 1 to 3 from 0, 2, 2, then 4 from 0. So a reader needs 8 files at most, and a change
is written for few of them again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from midstream.checkpoint.credible import credible, shaped
from midstream.checkpoint.json_difference import Difference, difference, patched
from midstream.model.codec import decode, encode
from midstream.model.errors import CheckpointError
from midstream.model.manifest import KeepsLanes, LanePart, LaneState, Manifest
from midstream.state.store.disk import crc32, seal, unseal
from midstream.state.store.files import FileStore
from midstream.state.store.storage import Storage

Document = dict[str, Any]
"""A whole manifest as JSON values."""

BASE, DIFFERENCE = "base", "difference"
"""What a file has that has no whole manifest: which one, by `name` and `crc32`, it differs from, and in what."""

DIFFERS = "+.json"
"""How the names of such files end, so that a listing tells them from those that stand by themselves."""

_PEEKED = re.compile(rb'\{[^{}]{1,80},"crc32":"[0-9a-f]{8}","value":\{"base":\{"name":"([^"\\]+)"')

_NO_MANIFEST = (KeyError, TypeError, ValueError, AttributeError, IndexError)


@dataclass(frozen=True)
class Written:
    """A manifest's file that others may differ from: its name, the checksum of its bytes and the whole document."""

    name: str
    crc32: int
    document: Document

    @staticmethod
    def of(name: str, data: bytes, document: Document) -> Written:
        """Describe a file that was written under a name."""
        return Written(name, crc32(data), document)


def document_of(manifest: Manifest) -> Document:
    """Encode a whole manifest; parts that were encoded before are the same objects."""
    return dict(encode(manifest))


def written(manifest: Manifest) -> bytes:
    """Encode a whole manifest as the bytes of its file."""
    return seal(document_of(manifest))


def written_difference(base: Written, found: Difference) -> bytes:
    """Encode a manifest, by its difference from another file, as the bytes of its file."""
    return seal({BASE: {"name": base.name, "crc32": base.crc32}, DIFFERENCE: found})


def base_named_in(data: bytes) -> str | None:
    """Find the name of the base file in the first bytes of a file; None if it names none."""
    found = _PEEKED.match(data)
    return found[1].decode() if found else None


def manifest_of(data: bytes, place: str, remedy: str, store: KeepsLanes) -> Manifest:
    """Read a manifest from the bytes of a file that holds all of it but the parts of lanes, which are in the `store`.

    Raises `CheckpointError` where they are damaged or no midstream wrote them.

    >>> manifest_of(written(Manifest(step=3)), "here", "", FileStore("there")).step
    3
    """
    found = manifest_in(read_document(data, place, remedy, _alone(place, remedy)), place, remedy)
    return with_lanes(found, store, {})


def with_lanes(manifest: Manifest, store: KeepsLanes, known: Mapping[LanePart, LaneState]) -> Manifest:
    """Read the parts of a manifest's lanes from a store, except `known` ones.

    Raises `CheckpointError` where one is missing or damaged.
    """
    if all(state.part is None for state in manifest.lane_states.values()):
        return manifest
    lanes = {}
    for lane, state in manifest.lane_states.items():
        lanes[lane] = state if state.part is None else known.get(state.part) or state.read_from(store)
    return replace(manifest, lane_states=lanes)


def read_document(data: bytes, place: str, remedy: str, base: Callable[[str], Written]) -> Document:
    """Read the whole document of a manifest's file; `base` reads a base file by its name."""
    value = unseal(data, place, remedy)
    try:
        if BASE not in value:
            return dict(value)
        name, checksum = value[BASE]["name"], value[BASE]["crc32"]
    except _NO_MANIFEST as error:
        raise _unreadable(error, place, remedy) from error
    former = base(name)
    if former.crc32 != checksum:
        message = f"it holds what differs from {name}, and that is not the file it was written after"
        raise CheckpointError(message, place=place, remedy=remedy)
    try:
        return dict(patched(former.document, value[DIFFERENCE]))
    except _NO_MANIFEST as error:
        raise _unreadable(error, place, remedy) from error


def manifest_in(document: Document, place: str, remedy: str) -> Manifest:
    """Decode the manifest of a whole document; raises `CheckpointError` where it has none."""
    try:
        return credible(decode(Manifest, shaped(document, place)), place)
    except _NO_MANIFEST as error:
        raise _unreadable(error, place, remedy) from error


def _unreadable(error: Exception, place: str, remedy: str) -> CheckpointError:
    return CheckpointError(f"the file does not read as a manifest: {error!r}", place=place, remedy=remedy)


def _alone(place: str, remedy: str) -> Callable[[str], Written]:
    def base(name: str) -> Written:
        raise CheckpointError(f"it holds only what differs from {name}", place=place, remedy=remedy)

    return base


LEAST = 1 << 16
"""A manifest of fewer bytes is always written whole: that takes no time, and its reader one file."""

MOST = 256
"""A whole manifest follows after so many files with differences at the latest."""


class _File(NamedTuple):
    epoch: int
    written: Written
    size: int
    base: str | None


def epoch_of(manifest: Manifest) -> int:
    """Return the number of the epoch that a manifest is of; 0 for a saved engine."""
    return manifest.epochs[-1].number if manifest.epochs else 0


class ManifestWriting:
    """The manifests that one process has written in its epoch, since the last whole one and before.

    `bases` has by name the file that each file with a difference stands on.
    """

    def __init__(self) -> None:
        self.bases: dict[str, str] = {}
        self._epoch = 0
        self._stack: list[tuple[int, Written]] = []
        self._number = self._whole = self._since = 0
        self._next: _File | None = None

    def file(self, name: str, manifest: Manifest) -> tuple[str, bytes]:
        """Make the name and the bytes of a manifest's file; a whole manifest would have this name.

        Call `stands` once the file is written.
        """
        document, base = document_of(manifest), self._base(manifest)
        found = None if base is None else difference(base.document, document)
        data = seal(document) if base is None or found is None else written_difference(base, found)
        standing_on = base.name if base is not None and found is not None else None
        name = name if standing_on is None else name.removesuffix(".json") + DIFFERS
        self._next = _File(epoch_of(manifest), Written.of(name, data, document), len(data), standing_on)
        return name, data

    def stands(self) -> None:
        """Record that the file is written: others may differ from it."""
        assert self._next is not None
        self._epoch, file, size, base = self._next
        if base is None:
            self._number, self._whole, self._since, self._stack = 0, size, 0, []
        else:
            self._number, self._since = self._number + 1, self._since + size
            self._stack = self._below(self._number)
            self.bases[file.name] = base
        if self._epoch and self._whole >= LEAST:
            self._stack.append((self._number, file))

    def needed(self, names: set[str]) -> set[str]:
        """Collect the files needed to read files of these names, themselves included, and those the next may differ
        from."""
        found = {file.name for _, file in self._stack}
        for name in names:
            one: str | None = name
            while one is not None and one not in found:
                found.add(one)
                one = self.bases.get(one)
        return found

    def forget_all_but(self, left: set[str]) -> None:
        """Forget all files except those of these names."""
        self.bases = {name: base for name, base in self.bases.items() if name in left}

    def _base(self, manifest: Manifest) -> Written | None:
        # None where the whole is to be written.
        spent = self._since >= self._whole or self._number + 1 >= MOST
        if not self._stack or epoch_of(manifest) != self._epoch or spent:
            return None
        return self._below(self._number + 1)[-1][1]

    def _below(self, number: int) -> list[tuple[int, Written]]:
        base = number & (number - 1)
        return [one for one in self._stack if one[0] <= base]


BASES_KEPT = 16
"""Of so many files that others differ from a reader keeps what it has read."""


class ManifestReading:
    """Reads the files of a log in a storage; any number of threads may."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._bases: dict[str, Written] = {}
        self._base_names: dict[str, str] = {}
        self._lanes: dict[LanePart, LaneState] = {}

    @cached_property
    def _store(self) -> FileStore:
        # Beside the manifests are the chunks, and the parts of lanes among them.
        return FileStore(f"{self._storage.url.rpartition('/')[0]}/store")

    def manifest(self, data: bytes, name: str) -> Manifest:
        """Read the manifest in the bytes of the file of this name, and the parts of its lanes.

        Raises `CheckpointError` where they, or a file that they differ from, are damaged or missing.
        """
        place = self._storage.place(name)
        found = manifest_in(self._document(data, name), place, "")
        try:
            found = with_lanes(found, self._store, self._lanes)
        except CheckpointError as error:
            # The writer may have taken both away after the one was read.
            if not self._storage.exists(name):
                raise FileNotFoundError(name) from error
            raise CheckpointError(f"{error.message}, at {error.place}", place=place) from error
        self._lanes = {state.part: state for state in found.lane_states.values() if state.part is not None}
        return found

    def needed(self, names: Iterable[str]) -> set[str]:
        """Collect the files needed to read files of these names, themselves included; few, since it reads them."""
        found = set[str]()
        for name in names:
            one: str | None = name
            while one is not None and one not in found:
                found.add(one)
                one = self._base_of(one)
        return found

    def _base_of(self, name: str) -> str | None:
        if not name.endswith(DIFFERS):
            return None
        if name not in self._base_names:
            self._base_names[name] = base_named_in(self._storage.read(name).to_pybytes()) or ""
        return self._base_names[name] or None

    def _document(self, data: bytes, name: str) -> Document:
        return read_document(data, self._storage.place(name), "", lambda base: self._base(base, name))

    def _base(self, name: str, of: str) -> Written:
        place = self._storage.place(of)
        if not (isinstance(name, str) and "/" not in name and name < of):
            message = f"it holds what differs from {name!r}, which is not a file from before it"
            raise CheckpointError(message, place=place)
        # A base file never changes, so it is read once.
        if (known := self._bases.get(name)) is not None:
            return known
        try:
            data = self._storage.read(name).to_pybytes()
        except FileNotFoundError:
            if not self._storage.exists(of):
                raise
            message = f"it holds what differs from {name}, which is missing"
            raise CheckpointError(message, place=place) from None
        found = Written.of(name, data, self._document(data, name))
        for old in list(self._bases)[: len(self._bases) - BASES_KEPT + 1]:
            self._bases.pop(old, None)
        self._bases[name] = found
        return found
