"""Which file a manifest becomes: one with the whole, or one with what differs from a file before.

A manifest lists every chunk of every lane and every query, of which a step changes few. So most files of a large one
hold a difference, and what is written goes with what changed. Of the files since a whole one, number n differs from
number n without its lowest bit: 1 to 3 from 0, 2, 2, then 4 from 0. So a reader needs 8 files at most, and a change
is written for few of them again.
"""

from __future__ import annotations

from typing import NamedTuple

from midstream.checkpoint.difference import difference
from midstream.checkpoint.manifest_file import DIFFERS, Written, document_of, written_difference
from midstream.model.manifest import Manifest
from midstream.state.store.disk import seal

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
    """What one process has written in its epoch, since the last whole manifest and before.

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
