"""What no manifest can say: names that lead out of the checkpoint, sizes beyond all use, values of another shape."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from midstream.model.errors import CheckpointError
from midstream.model.manifest import Manifest
from midstream.runtime.lane_key import SLOTS

MOST = 1 << 62
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
    for key, fits in _SHAPES.items():
        if key in published and not fits(published[key]):
            raise _not_ours(f"what the manifest has published under {key!r} is nothing that a job publishes", place)
    return document


def _check_numbers(manifest: Manifest, place: str) -> None:
    numbers = {"step": manifest.step, "last command": manifest.last_command}
    numbers |= {f"epoch {one.number!r}": one.number for one in manifest.epochs}
    for what, number in numbers.items():
        if not _is_number(number) or not -1 <= number < MOST:
            raise _not_ours(f"the manifest has the {what} {number!r}, which no job comes to", place)
    if not _is_number(manifest.lanes) or not 1 <= manifest.lanes <= SLOTS:
        raise _not_ours(f"the manifest has {manifest.lanes!r} lanes, which no job can have", place)
    if not _is_number(manifest.held_in) or not 0 <= manifest.held_in <= manifest.lanes:
        raise _not_ours(f"the manifest has its lanes in {manifest.held_in!r} shares, which no job has", place)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_any_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _are(value: Any, fits: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(map(fits, value))


def _are_named(value: Any, fits: Callable[[Any], bool]) -> bool:
    return isinstance(value, dict) and all(map(fits, value.values()))


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_staged(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 4 and all(map(_is_text, value[:3])) and _is_number(value[3])


def _is_event(value: Any) -> bool:
    return isinstance(value, dict) and _is_text(value.get("event")) and _is_number(value.get("step"))


def _is_carried(value: Any) -> bool:
    return isinstance(value, dict) and all(_are_named(value.get(part, {}), _is_text) for part in ("texts", "objects"))


def _is_query(value: Any) -> bool:
    return isinstance(value, dict) and _is_text(value.get("sql")) and _is_any_text(value.get("plan"))


def _is_declared(value: Any) -> bool:
    # What is as by default is not written.
    if not value or not isinstance(value, dict) or not _are_named(value.get("queries", {}), _is_query):
        return False
    lanes, tables = value.get("lanes"), value.get("tables", {})
    named = _is_any_text(value.get("sharing")) and _are_named(tables, _is_text)
    return named and (lanes is None or _is_number(lanes)) and _are_named(value.get("optimizer", {}), _is_object)


_SHAPES: Mapping[str, Callable[[Any], bool]] = {
    "host": _is_text,
    "files": lambda value: _are(value, _is_staged),
    "read": lambda value: _are_named(value, lambda files: _are(files, _is_text)),
    "spark": _is_carried,
    "declared": _is_declared,
    "events": lambda value: _are(value, _is_event),
    "late": lambda value: _are_named(value, _is_object),
    "dead_letters": lambda value: _are_named(value, _is_object),
}
"""By its name what a host publishes with a step, or `Engine.save` with an engine: what it looks like."""


def _not_ours(message: str, place: str) -> CheckpointError:
    return CheckpointError(message, place=place, remedy="do not use this checkpoint: it was not written by midstream")
