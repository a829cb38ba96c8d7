"""The manifests in the files of a log: those that hold a difference are put together with what they differ from."""

from __future__ import annotations

from collections.abc import Iterable

from midstream.checkpoint.manifest_file import DIFFERS, Document, Written, base_named_in, manifest_in, read_document
from midstream.model.errors import CheckpointError
from midstream.model.manifest import Manifest
from midstream.state.store.storage import Storage

BASES_KEPT = 16
"""Of so many files that others differ from a reader keeps what it has read."""


class ManifestReading:
    """Reads the files of a log in a storage; any number of threads may."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._bases: dict[str, Written] = {}
        self._base_names: dict[str, str] = {}

    def manifest(self, data: bytes, name: str) -> Manifest:
        """Read the manifest in the bytes of the file of this name.

        Raises `CheckpointError` where they, or a file that they differ from, are damaged or missing.
        """
        return manifest_in(self._document(data, name), self._storage.place(name), "")

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
            message = f"it holds what differs from {name!r}, which is no file from before it"
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
