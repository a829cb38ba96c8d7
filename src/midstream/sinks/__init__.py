"""Where results go: files, tables of Delta, Iceberg or PostgreSQL, topics of Kafka, functions, or another package's.

`midstream.sinks.files("/data/out/pairs")` keeps a folder per step, put in place atomically; a function `f(results,
step, query)` is called once a step that has results, with a DataFrame on Spark and an Arrow table embedded, and again
if the job died before it returned: it must be idempotent in (step, query). A class that fulfils the contract `Sink` is
one file, here or in another package.

In: the results of a step, staged, and whose step it is. Out: each of them in the sink once, also after kills.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from midstream.model.discovery import kinds
from midstream.model.errors import SinkError
from midstream.sinks.contract import Frames, Sink, StagedStep, Staging
from midstream.sinks.delta import DeltaSink
from midstream.sinks.file_sink import FileSink
from midstream.sinks.function_sink import FunctionSink, SinkFunction
from midstream.sinks.iceberg import IcebergSink
from midstream.sinks.kafka import KafkaSink
from midstream.sinks.merged import MergedResults
from midstream.sinks.postgresql import PostgresqlSink
from midstream.storage.places import located

__all__ = [
    "DeltaSink",
    "FileSink",
    "Frames",
    "FunctionSink",
    "IcebergSink",
    "KafkaSink",
    "PostgresqlSink",
    "Sink",
    "SinkFunction",
    "StagedStep",
    "Staging",
    "as_sink",
    "files",
    "merged_files",
    "restored",
]

ENTRY_POINTS = "midstream.sinks"
"""The group of entry points by which another package brings a sink."""


def files(path: str | os.PathLike[str], format: str = "parquet") -> FileSink:
    """Make a sink of files: Parquet, JSON lines or CSV. The path must be one that every machine of the cluster sees.

    >>> files("/data/out/pairs", format="json")
    FileSink(path='/data/out/pairs', format='json')
    """
    return FileSink.of({"path": path, "format": format})


def merged_files(path: str | os.PathLike[str]) -> list[str]:
    """List the files that `midstream compact` has merged the results in a sink of files into, in order of their steps.

    All of them together are the results up to one step, each row once, also while others merge.

    >>> merged_files("/data/out/nothing_yet")
    []
    """
    return MergedResults.of(located(path)).files()


def as_sink(value: Any, default: str) -> Sink:
    """Make the sink a user means: a `Sink`, a function, the dict of a job file, or None for files at `default`."""
    if value is None or value == {}:
        return files(default)
    if isinstance(value, Sink):
        return value
    if isinstance(value, Mapping) and "type" in value:
        return _kind(value["type"]).of({key: option for key, option in value.items() if key != "type"})
    if isinstance(value, Mapping) and "path" in value:
        return FileSink.of(value)
    if callable(value):
        return FunctionSink(value)
    raise SinkError(
        f"{value!r} is not a sink",
        place="sink",
        remedy="use ms.sinks.files(path, format), a function f(results, step, query) or a Sink",
    )


def restored(value: Mapping[str, Any] | None, default: str) -> Sink | None:
    """Make the sink that a manifest names; None for a function, which no manifest can hold."""
    return None if value is not None and "function" in value else as_sink(value, default)


def _kind(name: str) -> type[Sink]:
    known = kinds(sys.modules[__name__], Sink, ENTRY_POINTS)
    if not isinstance(name, str) or name not in known:
        remedy = f"use one of: {', '.join(known)}; in Python a sink may also be a function f(results, step, query)"
        raise SinkError(f"unknown sink {name!r}", place="sink", remedy=remedy)
    return known[name]
