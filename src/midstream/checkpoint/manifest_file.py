"""A manifest in a file, of whatever format: read with care, as this version would have written it."""

from __future__ import annotations

from midstream.checkpoint.credible import credible
from midstream.checkpoint.first_names import with_present_state_names
from midstream.checkpoint.upgrade import upgraded
from midstream.model.codec import decode, encode
from midstream.model.errors import CheckpointError
from midstream.model.manifest import FORMAT_VERSION, READABLE, Manifest
from midstream.state.store.disk import other_version, seal, unseal


def written(manifest: Manifest) -> bytes:
    """The bytes of the file of a manifest."""
    # The version once more, where the checksum covers it.
    return seal({"format": FORMAT_VERSION, **encode(manifest)})


def manifest_of(data: bytes, place: str, remedy: str) -> Manifest:
    """The manifest in the bytes of a file; raises `CheckpointError` where they are damaged or no midstream wrote them.

    >>> manifest_of(written(Manifest(step=3)), "here", "").step
    3
    """
    value = unseal(data, place, remedy)
    try:
        if value["format"] not in READABLE:
            raise other_version(str(value["format"]), place)
        manifest = credible(decode(Manifest, upgraded(value)), place)
        return with_present_state_names(manifest) if value["format"] == 1 else manifest
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        message = f"the file does not read as a manifest: {error!r}"
        raise CheckpointError(message, place=place, remedy=remedy) from error
