"""Bodies of parcels that go by files: where all tasks see the store's files, Spark's shuffle carries only their names.

A body that goes through the shuffle is pickled, copied into the JVM, compressed, written, and all of that backwards.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace

from midstream.spark.parcel import END, Parcel
from midstream.state.store.files import FileStore
from midstream.state.store.unsynced import Unsynced

LEAST = 256 << 10
"""Smaller bodies go with their parcels."""

FOLDER = "parcels"
"""Where they lie among an epoch's chunks."""


@dataclass(frozen=True)
class ParcelFiles:
    """The files of a step's parcels, in its store: of bodies of `least` bytes or more.

    Nobody needs them after the step, so none is made to survive the loss of power; those of a driver that has died go
    with a sweep of the store.
    """

    store: FileStore
    step: int
    least: int

    @staticmethod
    def of(store: FileStore, step: int) -> ParcelFiles | None:
        """Choose the files of a store; None if it has no files that are as quick as memory."""
        return ParcelFiles(store, step, LEAST) if store.storage.renames_folders else None

    def written(self, parcels: Iterable[Parcel], partition: int) -> list[Parcel]:
        """Write the large bodies of the parcels that a partition sends to files."""
        store, token = self.store.synced_with(Unsynced()), secrets.token_hex(4)
        found = []
        for number, parcel in enumerate(parcels):
            if parcel.file:
                found.append(replace(parcel, body=b""))
            elif parcel.stage != END and len(parcel.body) >= self.least:
                # Parcels of equal heads come from different partitions: their names put them in order.
                label = f"{FOLDER}/{self.step:08d}-{parcel.stage}.{partition:06d}.{number}.{token}"
                found.append(replace(parcel, body=b"", file=store.put_bytes(label, parcel.body)))
            else:
                found.append(parcel)
        return found

    def read(self, parcels: Iterable[Parcel]) -> list[Parcel]:
        """Read the bodies of the parcels that are in files."""
        return [replace(one, body=self.store.get_bytes(one.file)) if one.file else one for one in parcels]

    def remove(self) -> None:
        """Remove all of them, once the step's job has ended, however it did."""
        self.store.remove_folder(FOLDER)
