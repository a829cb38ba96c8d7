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
from itertools import islice
from typing import Any, NamedTuple

from midstream.model.codec import decode, encode
from midstream.model.errors import CheckpointError
from midstream.model.manifest import KeepsLanes, LanePart, LaneState, Manifest
from midstream.runtime.lane_key import SLOTS
from midstream.storage.disk import crc32, seal, unseal
from midstream.storage.files import FileStore
from midstream.storage.storage_contract import Storage

MOST_NUMBER = 1 << 62
"""No step, epoch or command is ever counted so far."""

_PART = re.compile(r"[^/\\\0.][^/\\\0]*")
"""One part of a path, that leads nowhere else."""


def credible(manifest: Manifest, place: str) -> Manifest:
    """Return the manifest, or raise `CheckpointError` if this program cannot have written it.

    What a manifest names becomes part of paths: its job, its epochs, the files that a step has staged and what they are
    of. The names of chunks are checked by the store, and those of queries and streams are made fit for paths where they
    are used.
    """
    published = manifest.published
    names = filter(None, (manifest.job, *(epoch.token for epoch in manifest.epochs)))
    files = (one.file for one in published.files)
    carried = () if published.spark is None else published.spark.objects.values()
    wrong = next((name for name in (*names, *files, *carried) if not _PART.fullmatch(name)), None)
    if wrong is not None:
        raise _not_ours(f"the manifest has a name that leads elsewhere, {wrong!r}", place)
    outputs = {"results": manifest.queries, "late": manifest.streams, "dead_letters": manifest.streams}
    outputs |= {"rejected": manifest.queries}
    unknown = next((one for one in published.files if one.name not in outputs.get(one.kind, ())), None)
    if unknown is not None:
        raise _not_ours(
            f"the manifest has files of {unknown.kind!r} of {unknown.name!r}, which the job does not have", place
        )
    _check_numbers(manifest, place)
    return manifest


def shaped(document: Mapping[str, Any], place: str) -> Mapping[str, Any]:
    """Return a manifest's document, or raise `CheckpointError` where what is published has another shape."""
    published = document["published"]
    for key, shape in _SHAPES.items():
        if key in published and (published[key] == {} or not fits(published[key], shape)):
            raise _not_ours(f"what the manifest has published under {key!r} is nothing that a job publishes", place)
    return document


def _check_numbers(manifest: Manifest, place: str) -> None:
    numbers = {"step": manifest.step, "last command": manifest.last_command}
    numbers |= {f"epoch {one.number!r}": one.number for one in manifest.epochs}
    for what, number in numbers.items():
        if not _is_number(number) or not -1 <= number < MOST_NUMBER:
            raise _not_ours(f"the manifest has the {what} {number!r}, which no job comes to", place)
    if not _is_number(manifest.lanes) or not 1 <= manifest.lanes <= SLOTS:
        raise _not_ours(f"the manifest has {manifest.lanes!r} lanes, which no job can have", place)
    if not _is_number(manifest.held_in) or not 0 <= manifest.held_in <= manifest.lanes:
        raise _not_ours(f"the manifest has its lanes in {manifest.held_in!r} shares, which no job has", place)


def _is_number(value: Any) -> bool:
    return type(value) is int


_SHAPES: Mapping[str, Any] = {
    "host": str,
    "files": [[str, str, str, int]],
    "read": {"*": [str]},
    "spark": {"*": {"*": str}},
    "declared": {
        "lanes?": int,
        "sharing?": str,
        "queries?": {"*": {"sql": str, "plan?": str}},
        "optimizer?": {"*": dict},
        "tables?": {"*": str},
    },
    "events": [{"event": str, "step": int}],
    "late": {"*": dict},
    "dead_letters": {"*": dict},
}
"""By its name what a host publishes with a step, or `Engine.save` with an engine: what it looks like.

`[one]` stands for any number of these, `{"*": one}` for these by any name, and a name with `?` may be missing or null.
No value is an empty object, because defaults are not written.
"""


def fits(value: Any, shape: Any) -> bool:
    """Return whether a JSON value has a shape, which is written as those of `_SHAPES` are.

    >>> fits({"file": "a", "more": 1}, {"file": str}), fits([["a", 1], ["b", "c"]], [[str, int]])
    (True, False)
    """
    match shape:
        case type():
            return type(value) is shape
        case [one]:
            return type(value) is list and all(fits(item, one) for item in value)
        case [*several]:
            return type(value) is list and len(value) == len(several) and all(map(fits, value, several))
        case {"*": one}:
            return type(value) is dict and all(fits(item, one) for item in value.values())
    return type(value) is dict and all(
        name.endswith("?") if (found := value.get(name.removesuffix("?"))) is None else fits(found, one)
        for name, one in shape.items()
    )


def _not_ours(message: str, place: str) -> CheckpointError:
    return CheckpointError(
        message, place=place, remedy="do not use this checkpoint, because midstream did not write it"
    )


Difference = dict[str, Any]
"""Of objects the names that are `set`, `gone`, and that differ `within`; of lists the `pieces`: a range [from, to] of
the old list, or an object with the items that are `new`.
"""

NEAR = 16
"""An item that is not the same object as before is looked for among so many old ones."""

_MISSING = object()


def difference(old: Any, new: Any) -> Difference | None:
    """Find what turns `old` into `new`; None if only writing `new` as a whole does.

    >>> old = {"step": 3, "lanes": {"a.0": {"rows": 5}, "a.1": {"rows": 7}}, "names": []}
    >>> difference(old, {**old, "step": 4, "lanes": {"a.0": {"rows": 6}, "a.1": {"rows": 7}}})
    {'set': {'step': 4}, 'within': {'lanes': {'within': {'a.0': {'set': {'rows': 6}}}}}}
    """
    if type(old) is not type(new):
        return None
    if type(new) is dict:
        return _of_objects(old, new)
    return _of_lists(old, new) if type(new) is list else None


def patched(old: Any, difference: Difference) -> Any:
    """Apply a difference and return the new value; `old` stays as it is.

    Raises `KeyError`, `TypeError`, `ValueError`, `AttributeError` or `IndexError` for what is no difference of `old`.

    >>> patched({"a": 1, "b": [{"n": 1}, {"n": 2}]}, {"gone": ["a"], "within": {"b": {"pieces": [[1, 2]]}}})
    {'b': [{'n': 2}]}
    """
    if "pieces" in difference:
        return [item for piece in difference["pieces"] for item in _items(old, piece)]
    made = dict(old)
    for name in difference.get("gone", ()):
        del made[name]
    for name, inner in difference.get("within", {}).items():
        made[name] = patched(old[name], inner)
    made.update(difference.get("set", {}))
    return made


def _of_objects(old: dict[str, Any], new: dict[str, Any]) -> Difference | None:
    own, gone = [name for name in old if name in new], list[str]()
    if len(own) < len(old):
        gone = [name for name in old if name not in new]
    if list(islice(new, len(own))) != own:
        return None
    changed, within = dict[str, Any](), dict[str, Any]()
    for name, value in new.items():
        before = old.get(name, _MISSING)
        if before is value:
            continue
        inner = difference(before, value)
        if inner is None:
            if not _equal(before, value):
                changed[name] = value
        elif inner:
            within[name] = inner
    parts = {"set": changed, "gone": gone, "within": within}
    return {part: what for part, what in parts.items() if what}


def _of_lists(old: list[Any], new: list[Any]) -> Difference | None:
    pieces, at = list[Any](), 0
    for item in new:
        near = range(at, min(at + NEAR, len(old)))
        found = next((place for place in near if _equal(old[place], item)), None)
        if found is None:
            if not pieces or type(pieces[-1]) is list:
                pieces.append({"new": []})
            pieces[-1]["new"].append(item)
            continue
        if pieces and type(pieces[-1]) is list and pieces[-1][1] == found:
            pieces[-1][1] += 1
        else:
            pieces.append([found, found + 1])
        at = found + 1
    if pieces == [[0, len(old)]] or (not old and not new):
        return {}
    return {"pieces": pieces} if any(type(piece) is list for piece in pieces) else None


def _items(old: Any, piece: Any) -> list[Any]:
    if type(piece) is dict:
        return list(piece["new"])
    begin, end = piece
    if not 0 <= begin < end <= len(old):
        raise IndexError(f"no range from {begin} to {end} in a list of {len(old)} items")
    return list(old[begin:end])


def _equal(old: Any, new: Any) -> bool:
    # `True` and 1 are written differently, and so are 0.0 and -0.0.
    if old is new:
        return True
    if type(old) is not type(new):
        return False
    if type(new) is dict:
        return len(old) == len(new) and all(
            one == other and _equal(old[one], new[other]) for one, other in zip(old, new, strict=True)
        )
    if type(new) is list:
        return len(old) == len(new) and all(map(_equal, old, new))
    return bool(repr(old) == repr(new) if type(new) is float else old == new)


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
    return CheckpointError(f"the file cannot be read as a manifest: {error!r}", place=place, remedy=remedy)


def _alone(place: str, remedy: str) -> Callable[[str], Written]:
    def base(name: str) -> Written:
        raise CheckpointError(
            f"the manifest lists only changes to {name}, and cannot be read without {name}", place=place, remedy=remedy
        )

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
        if base is None or found is None:
            data, standing_on = seal(document), None
        else:
            data = seal({BASE: {"name": base.name, "crc32": base.crc32}, DIFFERENCE: found})
            name, standing_on = name.removesuffix(".json") + DIFFERS, base.name
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
        return _with_bases({file.name for _, file in self._stack}, names, self.bases.get)

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


def _with_bases(found: set[str], names: Iterable[str], base_of: Callable[[str], str | None]) -> set[str]:
    for name in names:
        one: str | None = name
        while one is not None and one not in found:
            found.add(one)
            one = base_of(one)
    return found


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
        return _with_bases(set(), names, self._base_of)

    def _base_of(self, name: str) -> str | None:
        if not name.endswith(DIFFERS):
            return None
        if name not in self._base_names:
            found = _PEEKED.match(self._storage.read(name).to_pybytes())
            self._base_names[name] = found[1].decode() if found else ""
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
