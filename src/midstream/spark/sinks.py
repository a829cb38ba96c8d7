"""Where results go: files, or any function of a DataFrame.

`midstream.sinks.files("/data/out/pairs")` keeps a folder per step, put in place at once; a function `f(DataFrame,
step, query)` is called once a step that has results, and again if the job died before it returned: it must be
idempotent in (step, query).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from midstream.model.errors import SinkError
from midstream.spark.formats import FORMATS

SinkFunction = Callable[[DataFrame, int, str], Any]


@dataclass(frozen=True)
class FileSink:
    """Files in folders `step=N` below a path."""

    path: str
    format: str = "parquet"

    def to_json(self) -> dict[str, Any]:
        """The sink as a manifest and a command carry it."""
        return {"format": self.format, "path": self.path}


@dataclass(frozen=True)
class FunctionSink:
    """A function that is given each step's results."""

    function: SinkFunction

    def to_json(self) -> dict[str, Any]:
        """What a manifest can say of it: its name."""
        name = getattr(self.function, "__qualname__", None) or type(self.function).__qualname__
        return {"function": f"{getattr(self.function, '__module__', '')}.{name}"}


Sink = FileSink | FunctionSink


def files(path: str | os.PathLike[str], format: str = "parquet") -> FileSink:
    """A sink of files: Parquet, JSON lines or CSV. The path must be one that every machine of the cluster sees.

    >>> files("/data/out/pairs", format="json")
    FileSink(path='/data/out/pairs', format='json')
    """
    if format not in FORMATS:
        raise SinkError(f"unknown format {format!r}", place="sink", remedy=f"use one of: {', '.join(FORMATS)}")
    return FileSink(local_path(path), format)


def local_path(path: str | os.PathLike[str]) -> str:
    """A path on a file system that this machine has mounted; `file:` is taken off."""
    text = os.fspath(path)
    plain = text.removeprefix("file://") if text.startswith("file://") else text.removeprefix("file:")
    if "://" in plain:
        raise SinkError(
            f"{plain.partition(':')[0]} is not a mounted file system",
            place=text,
            remedy="name a path mounted on every machine, or write with a function f(DataFrame, step, query)",
        )
    return os.path.abspath(plain)


def as_sink(value: Any, default: str) -> Sink:
    """The sink a user means: what `files` made, a function, the dict of a job file, or None for files at `default`."""
    if value is None or value == {}:
        return FileSink(local_path(default))
    if isinstance(value, FileSink | FunctionSink):
        return value
    if isinstance(value, Mapping) and "path" in value:
        unknown = sorted(set(value) - {"path", "format"})
        if unknown:
            raise SinkError(f"unknown sink option {unknown[0]!r}", place="sink", remedy="use path and format")
        return files(value["path"], value.get("format", "parquet"))
    if callable(value):
        return FunctionSink(value)
    raise SinkError(
        f"{value!r} is no sink",
        place="sink",
        remedy="use ms.sinks.files(path, format) or a function f(DataFrame, step, query)",
    )
