"""What a job file says of a stream, of a query and of Spark, as frozen values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any

from midstream.model.command import OperatorOptions, OperatorPath, Part, Prompt, inputs_of, operator_value
from midstream.model.errors import InputError
from midstream.model.words import suggest
from midstream.sql.ddl import read_ddl
from midstream.sql.parts import QueryText
from midstream.sql.toml_file import TomlTable

CALIBRATION = "calibration"
"""What the settings of the optimizer call the file of `midstream calibrate`: `calibration = "units.json"`."""


@dataclass(frozen=True)
class SourceSpec:
    """Where a stream comes from: a format and options of Spark's readers, and what `create_stream` takes.

    `lateness`, `idle_timeout` and `max_ahead` are microseconds; `schema` is DDL text, or None if the format brings its
    own. `value` is how a message of Kafka is to be read: one of `KAFKA_VALUES`. `unit` is what an integer
    timestamp counts.
    `on_bad_file` is what a file that cannot be read does: `stop` the job, or `skip`, where it is a dead letter;
    `on_data_loss` the same of messages that a topic of Kafka keeps no longer. `dead_letters` is a sink, as a query's.
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
    on_bad_file: str = "stop"
    max_ahead: int | None = None
    on_data_loss: str = "stop"
    dead_letters: Mapping[str, Any] | None = None


OF_A_JOB = "midstream"
"""The format of a stream that is the results of another job's query: `path` is that job's checkpoint."""


GENERATOR = "generator"
"""The format of a stream whose rows are drawn by a seed."""


def read_results(name: str, spec: SourceSpec) -> tuple[str, str, dict[str, str]]:
    """The checkpoint and the query whose results a stream `OF_A_JOB` reads, and its other options."""
    others = {key: value for key, value in spec.options.items() if key != "query"}
    if spec.path is None or "query" not in spec.options:
        raise InputError(
            f"stream {name!r} does not name the checkpoint and the query of the results to read",
            place=f"[streams.{name}]",
            remedy='give the path of the job\'s checkpoint, and options = { query = "..." }',
        )
    return spec.path, spec.options["query"], others


@dataclass(frozen=True)
class TableSpec:
    """Where the rows of a static table come from: files of a format, read as a stream's, or as `schema` declares."""

    format: str
    path: str
    schema: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class QuerySpec(QueryText):
    """A query as a program, a job file, the command line or a form declares it; the command `AddQuery` begins it.

    `plan` is in plan notation. `history`: whether it sees, where it is new to a running job, what the job's queries
    hold. With a `spread` it runs over so many `nodes`.
    """

    query: Annotated[str, Prompt("A name that no running query has.", "NAME")]
    sql: Annotated[str, Prompt("The query; - reads it from standard input.", "SQL", long=True)]
    plan: Annotated[
        str | None, Prompt("The plan, such as '((A B) C)'; default: joins in the order of FROM.", "PLAN")
    ] = None
    sink: Annotated[
        dict[str, Any] | None,
        Prompt(
            "Where its results go: path=DIR, format=json, type=delta; see docs/sinks.md. Default: CKPT/results.",
            parts=(
                Part("--out", "path", "DIR", "Folder or URL of its results, as --sink path=DIR."),
                Part("--format", "format", "F", "parquet, json or csv, as --sink format=F."),
            ),
        ),
    ] = None
    operator: Annotated[str | None, OperatorPath] = None
    operator_options: Annotated[Mapping[str, Any], OperatorOptions] = field(default_factory=dict)
    history: Annotated[bool, Prompt("Let it see only the rows that arrive from its first step on.")] = True
    spread: Annotated[str | None, Prompt("Over nodes: psp_d, ..., or auto; see docs/spreading.md.", "S")] = None
    nodes: Annotated[int | str | None, Prompt("Over how many nodes, or auto; 4 unless you say.", "N")] = None
    spread_options: Annotated[
        Mapping[str, Any], Prompt("master, segment, copies, count_bound or objective of the spread; may be repeated.")
    ] = field(default_factory=dict)

    @property
    def above(self) -> dict[str, Any] | None:
        """The user's operator on top, as the manifest keeps it."""
        return operator_value(self.operator, self.operator_options)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `Engine.add_query` and `Job.query` after the name."""
        return {one.name: getattr(self, one.name) for one in fields(QuerySpec) if one.name != "query"}


def spark_settings(top: TomlTable) -> dict[str, str]:
    """Settings of Spark by their full names; `packages` is a list of Maven coordinates."""
    table = top.get("spark", dict, "a table of Spark's settings", {})
    found = dict(flat_settings(table))
    packages = found.pop("packages", None)
    if packages is not None:
        if not isinstance(packages, list) or not all(isinstance(one, str) for one in packages):
            top.fault("spark.packages", f"is {packages!r}", 'write a list such as ["group:artifact:version"]')
        else:
            found["spark.jars.packages"] = ",".join(packages)
    for name, value in found.items():
        if not name.startswith("spark."):
            remedy = "write packages, or a name such as 'spark.sql...'"
            top.fault(f"spark.{name}", "is not a setting of Spark", remedy)
        if not isinstance(value, str | int | float):
            top.fault("spark", f"cannot set {name} to {value!r}", "write a string or a number")
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in found.items()}


def flat_settings(table: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, Any]]:
    """The settings of a table; keys with dots that are not quoted are tables in tables."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from flat_settings(value, f"{within}{key}.")
        else:
            yield f"{within}{key}", value


KAFKA_VALUES = ("json", "avro", "protobuf", "debezium", "text", "bytes")
"""How the values of a topic are read; on Spark as JSON only."""

KAFKA_COLUMNS = {f"kafka_{name}": name for name in ("key", "topic", "partition", "offset", "timestamp")}
"""What Kafka itself says of a message: the columns that a schema may have of it, and Spark's names."""


def source_spec(table: TomlTable) -> SourceSpec:
    """The stream of a table `[streams.NAME]`."""
    kind, path = table.required("format"), table.get("path", str, "a string", None)
    schema, timestamp = table.get("schema", str, "a string", None), table.required("timestamp")
    lateness = table.duration("lateness") or 0
    idle, ahead = table.duration("idle_timeout"), table.duration("max_ahead")
    options = table.get("options", dict, "a table", {})
    value = table.get("value", str, "a string such as 'json'", None)
    unit = table.get("unit", str, "a string such as 'ms'", None)
    on_bad_file = table.get("on_bad_file", str, "a string", "stop")
    on_data_loss = table.get("on_data_loss", str, "a string", "stop")
    dead_letters: dict[str, Any] | None = table.get(
        "dead_letters", dict, '{ type = "kafka", topic = "rejected" }', None
    )
    table.close()
    if dead_letters is not None and isinstance(dead_letters.get("path"), str):
        dead_letters = {**dead_letters, "path": table.path_of(dead_letters["path"])}
    if on_data_loss not in ("stop", "skip"):
        table.fault("on_data_loss", f"is {on_data_loss!r}", 'use "stop", or "skip" to go on without the lost messages')
    if on_bad_file not in ("stop", "skip"):
        table.fault("on_bad_file", f"is {on_bad_file!r}", 'use "stop", or "skip" to go on without damaged files')
    if value is not None:
        _check_value(table, value, kind, schema)
    if schema is not None:
        declared, faults = read_ddl(schema)
        table.note("schema", faults)
        columns = declared.names
        unknown = [name for name in columns if name.startswith("kafka_") and name not in KAFKA_COLUMNS]
        if value is not None and unknown:
            remedy = suggest(unknown[0], KAFKA_COLUMNS)
            table.fault("schema", f"has {unknown[0]!r}, which is not a column of Kafka messages", remedy)
        if columns and timestamp and timestamp not in columns:
            table.fault("timestamp", f"is {timestamp!r}, which is not a column", suggest(timestamp, columns))
    path = None if path is None else table.path_of(path)
    given = _texts(dict(flat_settings(options)))
    return SourceSpec(
        *(kind, path, schema, timestamp, lateness, idle, given, value, unit, on_bad_file, ahead),
        *(on_data_loss, dead_letters),
    )


def table_spec(table: TomlTable) -> TableSpec:
    """The static table of a table `[tables.NAME]`."""
    kind, path, schema = table.required("format"), table.required("path"), table.get("schema", str, "a string", None)
    options = table.get("options", dict, "a table", {})
    table.close()
    if schema is not None:
        table.note("schema", read_ddl(schema)[1])
    return TableSpec(kind, table.path_of(path), schema, _texts(options))


def _texts(options: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items()}


def _check_value(table: TomlTable, value: str, kind: str, schema: str | None) -> None:
    if kind != "kafka":
        table.fault("value", f"is an option for Kafka messages, but the format is {kind!r}", "leave it out")
    elif value not in KAFKA_VALUES:
        remedy = f"use one of: {', '.join(KAFKA_VALUES)}; or leave it and the schema out for bytes"
        table.fault("value", f"is {value!r}", remedy)
    elif schema is None:
        table.fault(
            "schema", "is missing, so the values cannot be read", 'add a schema such as "id BIGINT, ts TIMESTAMP"'
        )


def optimizer_table(table: TomlTable) -> dict[str, Any] | None:
    """The settings of the optimizer that a table has, as they are written."""
    found: dict[str, Any] | None = table.get("optimizer", dict, "a table", None)
    if found and isinstance(found.get(CALIBRATION), str):
        return {**found, CALIBRATION: table.path_of(found[CALIBRATION])}
    return found


_READ: Mapping[str, tuple[Any, str]] = {
    "text": (str, "a string"),
    "flag": (bool, "true or false"),
    "named": (dict, "a table"),
    "value": (int | str, "a whole number, or 'auto'"),
}
"""The type that a file gives each kind of input, and its name in errors."""


def query_spec(table: TomlTable) -> tuple[QuerySpec, dict[str, Any] | None]:
    """Read the query of a table `[queries.NAME]`, and the settings of the optimizer that it has, as they are written.

    Its keys are the fields of `QuerySpec`.
    """
    given = dict[str, Any]()
    for one in inputs_of(QuerySpec):
        if one.name == "query":
            continue
        kind, what = _READ[one.kind]
        if one.name == "sink":
            given["sink"] = table.required("sink", kind, what, '{ format = "parquet", path = "out" }')
        elif one.required:
            given[one.name] = table.required(one.name)
        else:
            given[one.name] = table.get(one.name, kind, what, one.default)
    optimizer = optimizer_table(table)
    table.close()
    if given["spread"] is None and (given["nodes"] is not None or given["spread_options"]):
        table.fault("spread", "is missing, but nodes or spread_options are given", 'add spread = "auto"')
    if isinstance(given["sink"].get("path"), str):
        given["sink"] = {**given["sink"], "path": table.path_of(given["sink"]["path"])}
    return QuerySpec(table.path[-1], **given), optimizer
