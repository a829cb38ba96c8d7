"""Queries that waiting commands drop: a fault of their sinks or predicates must not keep a job from starting."""

from __future__ import annotations

from collections.abc import Sequence

from midstream.checkpoint.folders import Folders
from midstream.model.command import Command
from midstream.model.errors import MidstreamError
from midstream.model.manifest import Manifest
from midstream.step.commands.base import taken


def dropped_next(manifest: Manifest, folders: Folders, own: Sequence[Command] = ()) -> frozenset[str]:
    """Find the queries of a manifest that its next step drops, even if others take their names afterwards.

    It takes the commands that the manifest holds, a job script's `own` ones, and those of the log; one that it will
    refuse drops nothing. Of a log that cannot be read nobody knows any.
    """
    try:
        logged = [command for _, command in folders.commands.after(manifest.last_command)]
    except MidstreamError:
        logged = []
    current, gone = manifest, set[str]()
    for command in (*manifest.pending, *own, *logged):
        try:
            after = taken(current, command)
        except MidstreamError:
            continue
        gone |= current.queries.keys() - after.queries.keys()
        current = after
    return frozenset(gone & manifest.queries.keys())
