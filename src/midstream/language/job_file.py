"""Job files: streams, queries and sinks in TOML."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from midstream.language.ddl import parse_ddl
from midstream.language.duration import parse_duration
from midstream.language.scope import suggest
from midstream.model.errors import LanguageError
from midstream.model.manifest import DEFAULT_SHARING

Table = dict[str, Any]


@dataclass(frozen=True)
class SourceSpec:
    """Where a stream comes from: a format and options of Spark's readers, and what `create_stream` takes.

    `lateness` and `idle_timeout` are microseconds; `schema` is DDL text, or None if the format brings its own. `value`
    is how a message of Kafka is to be read, which with a schema is `json`. `unit` is what an integer timestamp counts.
    """

    format: str
    path: str | None
    schema: str | None
    timestamp: str
    lateness: int = 0
    idle_timeout: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    value: str | None = None
    unit: str | None = None


@dataclass(frozen=True)
class QuerySpec:
    """A query's text, its plan in plan notation or None, where its results go, and a user's operator on top.

    `history`: whether it sees, where it is new to a running job, what the job's queries hold. `optimizer` has settings
    of its own, as they are written; None where the job's count. With a `spread` it runs over so many `nodes`.
    """

    sql: str
    plan: str | None
    sink: Mapping[str, Any]
    operator: str | None = None
    operator_options: Mapping[str, Any] | None = None
    history: bool = True
    optimizer: Mapping[str, Any] | None = None
    spread: str | None = None
    nodes: int | str | None = None
    spread_options: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class JobFile:
    """A job: where its state lives, how many lanes it has, what it reads and computes, and how its queries share.

    Whether there is a scheme of the name `sharing` is checked where the job is made. `patience`, in microseconds, is
    how long a step is done again that fails for a reason outside; None leaves it to the job. `optimizer` says, as it is
    written, what the optimizer may do with queries that have no settings of their own.
    """

    checkpoint: str
    lanes: int
    streams: Mapping[str, SourceSpec]
    queries: Mapping[str, QuerySpec]
    sharing: str = DEFAULT_SHARING
    patience: int | None = None
    optimizer: Mapping[str, Any] | None = None


def read_job_file(path: str | Path) -> JobFile:
    """The job that a TOML file describes; paths in it stay as they are written.

    Raises LanguageError, which names the file, the table and the key.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise LanguageError(
            f"the job file cannot be read: {reason}", place=str(path), remedy="check the path"
        ) from error
    return parse_job(text, str(path))


def parse_job(text: str, where: str = "job file") -> JobFile:
    """The job that a TOML text describes.

    >>> job = parse_job('checkpoint = "c"\\n[streams.A]\\nformat = "json"\\ntimestamp = "ts"')
    >>> job.lanes, job.streams["A"].lateness
    (1, 0)
    """
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, _, spot = str(error).partition(" (at ")
        place = f"{where}, {spot.rstrip(')')}" if spot else where
        raise LanguageError(f"the job file is no TOML: {message}", place=place, remedy="correct it there") from error
    job = _Table(content, where)
    checkpoint = job.text("checkpoint")
    lanes = job.get("lanes", int, "a whole number", 1)
    if lanes < 1:
        raise job.error("lanes", "is less than 1", "use a whole number of at least 1")
    sharing = job.get("sharing", str, f"a text such as {DEFAULT_SHARING!r}", DEFAULT_SHARING)
    patience = job.duration("patience")
    streams = {name: _stream(table) for name, table in job.tables("streams")}
    queries = {name: _query(table) for name, table in job.tables("queries")}
    optimizer = job.get("optimizer", dict, "a table", None)
    job.close()
    if not streams:
        raise job.error("streams", "names no stream", "add a table such as [streams.A]")
    return JobFile(checkpoint, lanes, streams, queries, sharing, patience, optimizer)


def _stream(table: _Table) -> SourceSpec:
    kind, path = table.text("format"), table.get("path", str, "a text", None)
    schema, timestamp = table.get("schema", str, "a text", None), table.text("timestamp")
    lateness = table.duration("lateness") or 0
    idle = table.duration("idle_timeout")
    options = table.get("options", dict, "a table", {})
    value = table.get("value", str, "the text 'json'", None)
    unit = table.get("unit", str, "a text such as 'ms'", None)
    table.close()
    if value is not None:
        _check_value(table, value, kind, schema)
    if schema is not None:
        columns = table.within("schema", lambda: parse_ddl(schema)).names
        if timestamp not in columns:
            raise table.error("timestamp", f"names no column: {timestamp!r}", suggest(timestamp, columns))
    texts = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items()}
    return SourceSpec(kind, path, schema, timestamp, lateness, idle, texts, value, unit)


def _check_value(table: _Table, value: str, kind: str, schema: str | None) -> None:
    if kind != "kafka":
        raise table.error("value", f"says how to read messages of Kafka, and the format is {kind!r}", "leave it out")
    if value != "json":
        raise table.error("value", f"is {value!r}", 'use value = "json", or leave it and the schema out for bytes')
    if schema is None:
        raise table.error("schema", "is missing, of the JSON objects", 'add one such as "id BIGINT, ts TIMESTAMP"')


def _query(table: _Table) -> QuerySpec:
    sql, plan = table.text("sql"), table.get("plan", str, "a text", None)
    sink = table.get("sink", dict, "a table", None)
    operator = table.get("operator", str, "a text such as 'package.module:Class'", None)
    options = table.get("operator_options", dict, "a table", None)
    history = table.get("history", bool, "true or false", True)
    optimizer = table.get("optimizer", dict, "a table", None)
    spread = table.get("spread", str, "a text such as 'psp_d'", None)
    nodes = table.get("nodes", int | str, "a whole number, or 'auto'", None)  # type: ignore[arg-type]
    spread_options = table.get("spread_options", dict, "a table", None)
    table.close()
    if spread is None and (nodes is not None or spread_options is not None):
        raise table.error("spread", "is missing, of which nodes and spread_options are", 'add spread = "auto"')
    if sink is None:
        raise table.error("sink", "is missing", 'add one such as sink = { format = "parquet", path = "out" }')
    return QuerySpec(sql, plan, sink, operator, options, history, optimizer, spread, nodes, spread_options)


class _Table:
    """A TOML table under reading: its place, and the keys that are `known` because they have been read."""

    def __init__(self, content: Table, where: str) -> None:
        self.content, self.where, self.known = content, where, list[str]()

    def error(self, key: str, message: str, remedy: str) -> LanguageError:
        return LanguageError(f"{key} {message}", place=f"{self.where}, {key}", remedy=remedy)

    def get(self, key: str, kind: type, what: str, default: Any) -> Any:
        self.known.append(key)
        value = self.content.get(key, default)
        if key in self.content and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            raise self.error(key, f"is {value!r}", f"make it {what}")
        return value

    def text(self, key: str) -> str:
        value = self.get(key, str, "a text", None)
        if not value:
            raise self.error(key, "is missing", f'add {key} = "..."')
        return str(value)

    def duration(self, key: str) -> int | None:
        value = self.get(key, str | int, "a duration such as '5 seconds'", None)  # type: ignore[arg-type]
        return None if value is None else self.within(key, lambda: parse_duration(value))

    def tables(self, key: str) -> list[tuple[str, _Table]]:
        found = self.get(key, dict, "a table of tables", {})
        for name, content in found.items():
            if not isinstance(content, dict):
                raise self.error(f"{key}.{name}", "is no table", f"write [{key}.{name}]")
        return [(name, _Table(content, f"{self.where}, [{key}.{name}]")) for name, content in found.items()]

    def within(self, key: str, read: Callable[[], Any]) -> Any:
        """What `read` gives; its errors get this table's place put before theirs."""
        try:
            return read()
        except LanguageError as error:
            place = f"{self.where}, {key}" + (f", {error.place}" if error.place else "")
            raise LanguageError(error.message, place=place, remedy=error.remedy) from error

    def close(self) -> None:
        """Refuse keys that are not known."""
        for key in self.content:
            if key not in self.known:
                raise self.error(key, "is unknown here", suggest(key, self.known))
