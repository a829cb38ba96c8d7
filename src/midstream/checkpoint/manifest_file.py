"""A manifest in a file: written, and read with care.

A file has a manifest whole, or what differs from the one in another file, which it names with its checksum.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from midstream.checkpoint.credible import credible
from midstream.checkpoint.difference import Difference, patched
from midstream.model.codec import decode, encode
from midstream.model.errors import CheckpointError
from midstream.model.manifest import Manifest
from midstream.state.store.checksum import crc32
from midstream.state.store.disk import seal, unseal

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


def manifest_of(data: bytes, place: str, remedy: str) -> Manifest:
    """Read a manifest from the bytes of a file that holds all of it.

    Raises `CheckpointError` where the bytes are damaged or no midstream wrote them.

    >>> manifest_of(written(Manifest(step=3)), "here", "").step
    3
    """
    return manifest_in(read_document(data, place, remedy, _alone(place, remedy)), place, remedy)


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
        return credible(decode(Manifest, document), place)
    except _NO_MANIFEST as error:
        raise _unreadable(error, place, remedy) from error


def _unreadable(error: Exception, place: str, remedy: str) -> CheckpointError:
    return CheckpointError(f"the file does not read as a manifest: {error!r}", place=place, remedy=remedy)


def _alone(place: str, remedy: str) -> Callable[[str], Written]:
    def base(name: str) -> Written:
        raise CheckpointError(f"it holds only what differs from {name}", place=place, remedy=remedy)

    return base
