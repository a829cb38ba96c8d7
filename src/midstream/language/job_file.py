"""Job files: streams, queries and sinks in TOML."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self, TypeVar

from midstream.language.job_specs import (
    QuerySpec,
    SourceSpec,
    TableSpec,
    query_spec,
    source_spec,
    spark_settings,
    table_spec,
)
from midstream.language.toml_file import TomlTable, TomlText
from midstream.model.errors import LanguageError, MidstreamError
from midstream.model.manifest import DEFAULT_SHARING

Read = TypeVar("Read")

INCLUDE = "include"
"""Under it a job file names others, relative to itself, whose streams, queries and settings are its own."""

_KEYS = (
    INCLUDE, "checkpoint", "lanes", "sharing", "patience", "streams", "tables", "queries", "optimizer", "spark",
)  # fmt: skip


class JobFileError(LanguageError):
    """Several faults of a job file, told together; `faults` has each."""

    faults: tuple[MidstreamError, ...]

    @classmethod
    def of(cls, faults: Sequence[MidstreamError]) -> Self:
        """The error that tells all of several faults."""
        told = "".join(f"\n  {number}. {fault}" for number, fault in enumerate(faults, 1))
        error = cls(f"the job file has {len(faults)} faults:{told}")
        error.faults = tuple(faults)
        return error


@dataclass(frozen=True)
class JobFile:
    """A job: where its state lives, how many lanes it has, what it reads and computes, and how its queries share.

    Whether there is a scheme of the name `sharing` is checked where the job is made. `patience`, in microseconds, is
    how long a step is done again that fails for a reason outside; None leaves it to the job. `optimizer` says, as it is
    written, what the optimizer may do with queries that have no settings of their own. `spark` has settings of Spark's
    session, and `places` says where in the files each stream (`streams.A`), query and top-level key stands.
    """

    checkpoint: str
    lanes: int
    streams: Mapping[str, SourceSpec]
    queries: Mapping[str, QuerySpec]
    sharing: str = DEFAULT_SHARING
    patience: int | None = None
    optimizer: Mapping[str, Any] | None = None
    spark: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict, compare=False)
    tables: Mapping[str, TableSpec] = field(default_factory=dict)


def read_job_file(path: str | Path) -> JobFile:
    """The job that a TOML file describes, with the files that it includes; paths in it stay as they are written.

    `${NAME}` in a text is the value of an environment variable, `${NAME:-text}` has a default, `$$` is a dollar sign.
    Raises a `LanguageError`, which names the file, the line, the table and the key; of several a `JobFileError`.
    """
    return _job(list(_included(Path(path), (), {})))


def parse_job(text: str, where: str = "job file", environ: Mapping[str, str] = MappingProxyType({})) -> JobFile:
    """The job that a TOML text describes; it includes no other file.

    >>> text = 'checkpoint = "${HOME}/c"\\n[streams.A]\\nformat = "json"\\ntimestamp = "ts"'
    >>> job = parse_job(text, environ={"HOME": "/h"})
    >>> job.checkpoint, job.lanes, job.streams["A"].lateness
    ('/h/c', 1, 0)
    """
    found = TomlText.of(text, where, environ)
    if INCLUDE in found.content:
        raise found.table().error(INCLUDE, "names files, and this is a text", "read the job from a file")
    return _job([found])


def _included(path: Path, within: tuple[Path, ...], seen: dict[Path, None]) -> Iterator[TomlText]:
    """The content of a file and of all that it includes, each once."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        by = f", which {within[-1]} includes" if within else ""
        raise LanguageError(
            f"the job file cannot be read: {reason}", place=f"{path}{by}", remedy="check the path"
        ) from error
    if path.resolve() in seen:
        return
    seen[path.resolve()] = None
    found = TomlText.of(text, str(path), os.environ)
    yield found
    table = found.table()
    for name in table.get(INCLUDE, list, 'a list of files, such as ["streams.toml"]', []):
        if not isinstance(name, str):
            raise table.error(INCLUDE, f"has {name!r}", "name files")
        yield from _included(path.parent / name, (*within, path), seen)


def _job(texts: Sequence[TomlText]) -> JobFile:
    read = _Reader([text.table() for text in texts])
    a_text = f"a text such as {DEFAULT_SHARING!r}"
    job = JobFile(
        checkpoint=read.one("checkpoint", lambda top: top.required("checkpoint"), ""),
        lanes=read.one("lanes", _lanes, 1),
        sharing=read.one("sharing", lambda top: str(top.get("sharing", str, a_text, DEFAULT_SHARING)), DEFAULT_SHARING),
        patience=read.one("patience", lambda top: top.duration("patience"), None),
        streams=read.each("streams", source_spec),
        queries=read.each("queries", query_spec),
        tables=read.each("tables", table_spec),
        optimizer=read.one("optimizer", lambda top: top.get("optimizer", dict, "a table", None), None),
        spark=read.one("spark", spark_settings, {}),
        places=read.places,
    )
    read.end()
    return job


class _Reader:
    """Reads a job of several tables, the first levels of its files; what is wrong is kept, and told at the `end`."""

    def __init__(self, tops: Sequence[TomlTable]) -> None:
        self.tops = tops
        self.places: dict[str, str] = {}
        self.faults: list[LanguageError] = []

    def one(self, key: str, read: Callable[[TomlTable], Read], default: Read) -> Read:
        """The value of a key, which one file may have."""
        having = [top for top in self.tops if key in top.content]
        for top in having:
            self.places[key] = top.place(key)
        if len(having) > 1:
            there = having[0].place(key)
            self.faults.append(having[1].error(key, f"is in {there} already", "leave one of them out"))
        value = self._attempt(read, (having or self.tops)[0])
        return default if value is None else value

    def each(self, key: str, read: Callable[[TomlTable], Read]) -> dict[str, Read]:
        """The values by name of the tables under a key, in all files."""
        found: dict[str, Read] = {}
        for top in self.tops:
            for name, table in self._attempt(lambda one: list(one.tables(key)), top) or ():
                if (other := self.places.get(f"{key}.{name}")) is not None:
                    self.faults.append(table.error(name, f"is in {other} already", "name one of them otherwise"))
                    continue
                self.places[f"{key}.{name}"] = table.place()
                value = self._attempt(read, table)
                if value is not None:
                    found[name] = value
        return found

    def end(self) -> None:
        """Raise what was wrong, unknown keys and a lack of streams included."""
        for top in self.tops:
            top.known = list(_KEYS)
            self._attempt(TomlTable.close, top)
        if not any(key.startswith("streams.") for key in self.places) and not self.faults:
            self.faults.append(self.tops[0].error("streams", "names no stream", "add a table such as [streams.A]"))
        if self.faults:
            raise self.faults[0] if len(self.faults) == 1 else JobFileError.of(self.faults)

    def _attempt(self, read: Callable[[TomlTable], Read], table: TomlTable) -> Read | None:
        try:
            return read(table)
        except LanguageError as error:
            self.faults.append(error)
            return None


def _lanes(top: TomlTable) -> int:
    lanes = top.get("lanes", int, "a whole number", 1)
    if lanes < 1:
        raise top.error("lanes", "is less than 1", "use a whole number of at least 1")
    return int(lanes)
