"""What no manifest can say: names that lead out of the checkpoint, sizes beyond all use."""

from __future__ import annotations

import re

from midstream.model.errors import CheckpointError
from midstream.model.manifest import Manifest
from midstream.runtime.lane_key import SLOTS

_PART = re.compile(r"[^/\\\0.][^/\\\0]*")
"""One part of a path, that leads nowhere else."""


def credible(manifest: Manifest, place: str) -> Manifest:
    """The manifest as it is; raises `CheckpointError` where this program cannot have written it.

    What a manifest names becomes part of paths: its job, its epochs, the files that a step has staged and what they
    are of. The names of chunks are checked by the store, and those of queries and streams are made fit for paths where
    they are used.
    """
    names = filter(None, (manifest.job, *(epoch.token for epoch in manifest.epochs)))
    staged = [(kind, name, file) for kind, name, file, *_ in manifest.published.get("files", ())]
    files = (file for _, _, file in staged)
    wrong = next((name for name in (*names, *files) if not _PART.fullmatch(name)), None)
    if wrong is not None:
        raise _not_ours(f"the manifest has a name that leads elsewhere, {wrong!r}", place)
    outputs = {"results": manifest.queries, "late": manifest.streams, "dead_letters": manifest.streams}
    unknown = next((one for one in staged if one[1] not in outputs.get(one[0], ())), None)
    if unknown is not None:
        raise _not_ours(
            f"the manifest has files of {unknown[0]!r} of {unknown[1]!r}, which the job does not have", place
        )
    if not 1 <= manifest.lanes <= SLOTS:
        raise _not_ours(f"the manifest has {manifest.lanes} lanes, which no job can have", place)
    return manifest


def _not_ours(message: str, place: str) -> CheckpointError:
    return CheckpointError(message, place=place, remedy="do not use this checkpoint: it was not written by midstream")
