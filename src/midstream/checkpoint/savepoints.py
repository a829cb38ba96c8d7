"""Steps of a job that stay, under names: retention removes neither their manifests nor what those list."""

from __future__ import annotations

import re

from midstream.checkpoint.manifest_file import manifest_of, written
from midstream.model.errors import CheckpointError
from midstream.model.manifest import Manifest
from midstream.storage.files import FileStore
from midstream.storage.storage_contract import Storage
from midstream.storage.sweep import files_of

_NAME = re.compile(r"[A-Za-z][\w-]{0,99}", re.ASCII)
_REMEDY = "restore the file, or drop the savepoint: midstream savepoint CKPT NAME --drop"


class Savepoints:
    """The savepoints of a checkpoint: a file each, with the whole manifest of its step.

    >>> from tempfile import TemporaryDirectory
    >>> from midstream.storage.local import LocalStorage
    >>> with TemporaryDirectory() as folder:
    ...     savepoints = Savepoints(LocalStorage(folder))
    ...     savepoints.add("before-the-sale", Manifest(job="j", step=7))
    ...     savepoints.names(), savepoints.read("before-the-sale").step
    (['before-the-sale'], 7)
    """

    def __init__(self, checkpoint: Storage) -> None:
        self._checkpoint, self._storage = checkpoint, checkpoint.at("savepoints")

    def add(self, name: str, manifest: Manifest) -> None:
        """Keep a step under a name. Raises for a name that is taken or unfit, and where chunks are gone already."""
        check_name(name)
        if not self._storage.create(f"{name}.json", written(manifest)):
            raise CheckpointError(
                f"there is already a savepoint {name!r}",
                place=self._storage.url,
                remedy="use another name, or drop it first",
            )
        # From here on no sweep takes its chunks; one may have done so before.
        there = {file for file, _ in self._checkpoint.at("store").walk()}
        gone = sorted(files_of(manifest) - there)
        if gone:
            self.drop(name)
            raise CheckpointError(
                f"the checkpoint no longer has all chunks of step {manifest.step}: {gone[0]} is missing",
                place=self._checkpoint.url,
                remedy="name a newer step",
            )

    def drop(self, name: str) -> None:
        """Forget a savepoint, also a damaged one; the next sweep removes what only it kept."""
        if check_name(name) not in self.names():
            raise self._unknown(name)
        self._storage.remove([f"{name}.json"])

    def names(self) -> list[str]:
        """List the names of all savepoints, sorted."""
        found = (name.removesuffix(".json") for name in self._storage.names() if name.endswith(".json"))
        return sorted(name for name in found if _NAME.fullmatch(name))

    def read(self, name: str) -> Manifest:
        """Read the manifest of a savepoint."""
        place = self._storage.place(f"{name}.json")
        try:
            data = self._storage.read(f"{check_name(name)}.json").to_pybytes()
        except FileNotFoundError:
            raise self._unknown(name) from None
        return manifest_of(data, place, _REMEDY, FileStore(self._checkpoint.at("store")))

    def all(self) -> dict[str, Manifest]:
        """Read the manifests of all savepoints, by name; raises where one is damaged, since it may list anything."""
        return {name: self.read(name) for name in self.names()}

    def _unknown(self, name: str) -> CheckpointError:
        known = ", ".join(self.names())
        remedy = f"use one of: {known}" if known else "make a savepoint first"
        return CheckpointError(f"there is no savepoint {name!r}", place=self._checkpoint.url, remedy=remedy)


def check_name(name: str) -> str:
    """Return the name if a savepoint can have it; raises `CheckpointError` otherwise."""
    if not _NAME.fullmatch(name):
        raise CheckpointError(
            f"{name!r} cannot be the name of a savepoint",
            place="savepoint",
            remedy="use a letter, then letters, digits, - and _",
        )
    return name
