"""The sink of a query that a command begins, as far as it can be judged without asking it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from midstream.checkpoint.folders import OWN, Folders
from midstream.model.errors import MidstreamError, SinkError
from midstream.model.manifest import Manifest
from midstream.sinks import FileSink, Sink, restored
from midstream.sinks.file_sink import check_apart


def new_sink(folders: Folders, manifest: Manifest, query: str, value: dict[str, Any] | None) -> Sink | None:
    """Make the sink that a command names for a query that a manifest begins; None for a function, which only the job
    has.

    Raises `SinkError` where no job could ever have it: it cannot be made of its options, or it is a folder that is, has
    in it or is in one of the checkpoint's own or of another query's results. Readers of the one would find the rows of
    the other, or what is removed of one be missed by the other.
    """
    place = f"query {query}"
    try:
        found = restored(value, folders.results(query))
    except SinkError as error:
        raise SinkError(error.message, place=place, remedy=error.remedy) from error
    if isinstance(found, FileSink):
        others = [(f"query {name}", path) for name, path in _folders_of(folders, manifest) if name != query]
        check_apart([*others, (place, found.path)])
        for other, path in others:
            _check_not_inside(place, found.path, f"the results of {other}", path)
        for own in OWN:
            _check_not_inside(place, found.path, "the checkpoint", f"{folders.root}/{own}")
    return found


def _folders_of(folders: Folders, manifest: Manifest) -> Iterator[tuple[str, str]]:
    for name in manifest.asked_queries:
        with suppress(MidstreamError):  # One that waits too, and will be refused.
            sink = restored(manifest.queries[name].sink, folders.results(name))
            if isinstance(sink, FileSink):
                yield name, sink.path


def _check_not_inside(place: str, path: str, what: str, other: str) -> None:
    inside = _is_inside(path, other)
    if inside or _is_inside(other, path):
        raise SinkError(
            f"{path} {'is in' if inside else 'has in it'} the folder of {what}, {other}",
            place=place,
            remedy="give each query a folder of its own, outside of all others",
        )


def _is_inside(path: str, folder: str) -> bool:
    """Whether a path or URL is a folder or in it.

    >>> _is_inside("s3://b/a/c", "s3://b/a"), _is_inside("s3://b/ac", "s3://b/a")
    (True, False)
    """
    return f"{_resolved(path)}/".startswith(f"{_resolved(folder)}/")


def _resolved(path: str) -> str:
    return (path if "://" in path else os.path.realpath(path)).rstrip("/")
