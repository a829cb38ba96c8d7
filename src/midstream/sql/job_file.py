"""Job files: streams, queries and sinks in TOML."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self, TypeVar

from midstream.model.errors import LanguageError, MidstreamError
from midstream.model.manifest import DEFAULT_SHARING
from midstream.model.words import parse_size
from midstream.sql.job_specs import (
    QuerySpec,
    SourceSpec,
    TableSpec,
    flat_settings,
    optimizer_table,
    query_spec,
    source_spec,
    spark_settings,
    table_spec,
)
from midstream.sql.toml_file import Path as Keys
from midstream.sql.toml_file import TomlTable, TomlText

Read = TypeVar("Read")

INCLUDE = "include"
"""Under it a job file names others, relative to itself, whose streams, queries and settings are its own."""

_KEYS = (
    INCLUDE, "checkpoint", "lanes", "sharing", "patience", "memory", "workers", "streams", "tables", "queries",
    "optimizer", "spark",
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
    written, what the optimizer may do with queries that have no settings of their own; `optimizers` has those of the
    others. `memory`, in bytes, is the most that each process that joins may hold; None sets no limit. `workers` is the
    number of worker processes of the embedded engine, or "auto". `spark` has settings of Spark's session, and `places`
    says where in the files each stream (`streams.A`), query, key of one and top-level key stands.
    """

    checkpoint: str
    lanes: int
    streams: Mapping[str, SourceSpec]
    queries: Mapping[str, QuerySpec]
    sharing: str = DEFAULT_SHARING
    patience: int | None = None
    memory: int | None = None
    workers: int | str | None = None
    optimizer: Mapping[str, Any] | None = None
    optimizers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    spark: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict, compare=False)
    tables: Mapping[str, TableSpec] = field(default_factory=dict)


@dataclass(frozen=True)
class ReadJobFile:
    """What could be read of a job file, and what is wrong with the rest of it.

    `unread` has the keys, from the top down, that have faults; `job` has defaults for them. It is None where a whole
    file cannot be read.
    """

    job: JobFile | None
    faults: Sequence[LanguageError] = ()
    unread: Collection[Keys] = ()


def read_job_file(path: str | Path) -> JobFile:
    """The job that a TOML file describes, with the files that it includes. Paths count from the file that names them.

    `${NAME}` in a text is the value of an environment variable, `${NAME:-text}` has a default, `$$` is a dollar sign.
    Raises a `LanguageError`, which names the file, the line, the table and the key; of several a `JobFileError`.
    """
    return _whole(read_parts(path))


def read_parts(path: str | Path) -> ReadJobFile:
    """Read a job file as far as it can be read."""
    texts: list[TomlText] = []
    faults: list[LanguageError] = []
    _include(Path(path), (), texts, faults, set())
    found = _job(texts, whole=not faults) if texts else ReadJobFile(None)
    return ReadJobFile(None if faults else found.job, [*faults, *found.faults], found.unread)


def parse_job(text: str, where: str = "job file", environ: Mapping[str, str] = MappingProxyType({})) -> JobFile:
    """The job that a TOML text describes; it includes no other file.

    >>> text = 'checkpoint = "${HOME}/c"\\n[streams.A]\\nformat = "json"\\ntimestamp = "ts"'
    >>> job = parse_job(text, environ={"HOME": "/h"})
    >>> job.checkpoint, job.lanes, job.streams["A"].lateness
    ('/h/c', 1, 0)
    """
    found = TomlText.of(text, where, environ)
    if INCLUDE in found.content:
        found.table().fault(INCLUDE, "names files, but this job was not read from a file", "read the job from a file")
    return _whole(_job([found]))


def _whole(found: ReadJobFile) -> JobFile:
    if found.faults:
        raise found.faults[0] if len(found.faults) == 1 else JobFileError.of(found.faults)
    if found.job is None:
        raise AssertionError("no job was read, and no fault was reported")
    return found.job


def _include(
    path: Path, within: Sequence[Path], texts: list[TomlText], faults: list[LanguageError], seen: set[Path]
) -> None:
    """Read a file and all that it includes, each once, into texts; add the faults of those that cannot be read."""
    if path.resolve() in seen:
        return
    seen.add(path.resolve())
    try:
        found = TomlText.of(path.read_text(encoding="utf-8"), str(path), os.environ)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        by = f", which {within[-1]} includes" if within else ""
        faults.append(
            LanguageError(f"the job file cannot be read: {reason}", place=f"{path}{by}", remedy="check the path")
        )
        return
    except LanguageError as error:
        faults.append(error)
        return
    texts.append(found)
    table = found.table()
    for name in table.get(INCLUDE, list, 'a list of files, such as ["streams.toml"]', []):
        if isinstance(name, str):
            _include(path.parent / name, (*within, path), texts, faults, seen)
        else:
            table.fault(INCLUDE, f"has {name!r}", "name files")


def _job(texts: Sequence[TomlText], whole: bool = True) -> ReadJobFile:
    read = _Reader([text.table() for text in texts])
    what = f"a string such as {DEFAULT_SHARING!r}"
    queries = read.each("queries", query_spec)
    job = JobFile(
        checkpoint=read.one("checkpoint", lambda top: top.path_of(top.required("checkpoint")), ""),
        lanes=read.one("lanes", _lanes, 1),
        sharing=read.one("sharing", lambda top: str(top.get("sharing", str, what, DEFAULT_SHARING)), DEFAULT_SHARING),
        patience=read.one("patience", lambda top: top.duration("patience"), None),
        memory=read.one("memory", _memory, None),
        workers=read.one("workers", _workers, None),
        streams=read.each("streams", source_spec),
        queries={name: query for name, (query, _) in queries.items()},
        optimizers={name: optimizer for name, (_, optimizer) in queries.items() if optimizer is not None},
        tables=read.each("tables", table_spec),
        optimizer=read.one("optimizer", optimizer_table, None),
        spark=read.one("spark", spark_settings, {}),
        places=read.places,
    )
    faults = read.end(whole)
    return ReadJobFile(job, faults, {path for text in texts for path, _ in text.faults})


class _Reader:
    """Reads a job of several tables, the first levels of its files; the texts of these keep what is wrong.

    `places` says where each key, table and key of a table stands.
    """

    def __init__(self, tops: Sequence[TomlTable]) -> None:
        self.tops = tops
        self.places: dict[str, str] = {}

    def one(self, key: str, read: Callable[[TomlTable], Read], default: Read) -> Read:
        """The value of a key, which one file may have."""
        having = [top for top in self.tops if key in top.content]
        for top in having:
            self.places[key] = top.place(key)
            if isinstance(table := top.content[key], dict):
                self.places |= {f"{key}.{inner}": top.place(f"{key}.{inner}") for inner, _ in flat_settings(table)}
        if len(having) > 1:
            there = having[0].place(key)
            having[1].fault(key, f"is already in {there}", "remove one of the two")
        top = (having or self.tops)[0]
        value = read(top)
        return default if top.has_fault(key) else value

    def each(self, key: str, read: Callable[[TomlTable], Read]) -> dict[str, Read]:
        """The values by name of the tables under a key, in all files."""
        found: dict[str, Read] = {}
        for top in self.tops:
            for name, table in top.tables(key):
                if (other := self.places.get(f"{key}.{name}")) is not None:
                    table.fault(name, f"is already in {other}", "rename one of the two")
                    continue
                self.places[f"{key}.{name}"] = table.place()
                self.places |= {f"{key}.{name}.{inner}": table.place(inner) for inner in table.content}
                found[name] = read(table)
        return found

    def end(self, whole: bool) -> list[LanguageError]:
        """Return what was wrong, by files and lines: unknown keys too, and what the `whole` of the files lacks."""
        for top in self.tops:
            top.known = [*top.known, *_KEYS]
            top.close(whole)
        faults = [fault for top in self.tops for fault in top.text.faults_by_line()]
        if whole and not any(key.startswith("streams.") for key in self.places) and not faults:
            self.tops[0].fault("streams", "names no stream", "add a table such as [streams.A]")
            faults = self.tops[0].text.faults_by_line()
        return faults


def _lanes(top: TomlTable) -> int:
    lanes = top.get("lanes", int, "a whole number", 1)
    if lanes < 1:
        top.fault("lanes", "is less than 1", "use a whole number of at least 1")
    return int(lanes)


def _workers(top: TomlTable) -> int | str | None:
    value: int | str | None = top.get("workers", str | int, 'a whole number, or "auto"', None)  # type: ignore[arg-type]
    if isinstance(value, str) and value != "auto":
        top.fault("workers", f"is {value!r}", 'use a whole number of at least 1, or "auto"')
    elif isinstance(value, int) and value < 1:
        top.fault("workers", "is less than 1", 'use a whole number of at least 1, or "auto"')
    return value


def _memory(top: TomlTable) -> int | None:
    value = top.get("memory", str | int, "a text such as '4 GB'", None)  # type: ignore[arg-type]
    found: int | None = None if value is None else top.within("memory", lambda: parse_size(value))
    return found
