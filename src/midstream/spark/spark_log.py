"""Spark's own log of batches, brought back to where the newest manifest is."""

from __future__ import annotations

import os

from midstream.model.errors import CheckpointError
from midstream.model.manifest import Manifest
from midstream.spark.outputs import Outputs
from midstream.state.store.disk import cannot_write, names_in


def align(folder: str, manifest: Manifest, outputs: Outputs) -> None:
    """Have Spark do again every batch after the manifest's step, and take back what sinks got of them.

    Commonly there is none: a manifest is published before Spark commits its batch. After `ManifestLog.rewind` there
    are.
    """
    last = manifest.step
    commits, offsets = _batches(f"{folder}/commits"), _batches(f"{folder}/offsets")
    if last >= 0 and last not in offsets:
        raise CheckpointError(
            f"Spark does not know where step {last}, the newest, ended",
            place=folder,
            remedy="restore the folder, go back to a newer step, or begin with another checkpoint",
        )
    if max(commits, default=-1) <= last:
        return
    outputs.forget_after(manifest)
    for kind, batches in (("commits", commits), ("offsets", offsets)):
        for batch in sorted(batches, reverse=True):
            if batch > last:
                _remove(f"{folder}/{kind}", batch)


def _batches(folder: str) -> set[int]:
    return {int(name) for name in names_in(folder) if name.isdigit()}


def _remove(folder: str, batch: int) -> None:
    try:
        for name in (f"{batch}", f".{batch}.crc"):
            if os.path.exists(f"{folder}/{name}"):
                os.unlink(f"{folder}/{name}")
    except OSError as error:
        raise cannot_write(error, folder) from error
