"""Find the faults of a job file before the job starts."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from midstream.checkpoint.folders import Folders, new_sink
from midstream.cli.source_columns import (
    check_part,
    check_source_path,
    check_table_path,
    folder_warnings,
    header_warnings,
    lateness_warnings,
    row_warnings,
    source_columns,
    source_parts,
)
from midstream.commands.add_query import AddQuery
from midstream.commands.add_stream import refuse_taken_name
from midstream.commands.base import taken
from midstream.commands.rescale import check_lanes
from midstream.embedded.folder_source import table_rows
from midstream.embedded.processes import workers_of
from midstream.logical.query import Query, query_of
from midstream.model.allowed import check_settings_of_spark
from midstream.model.errors import LanguageError, MidstreamError
from midstream.model.manifest import EMBEDDED, SPARK, Manifest, StaticTable
from midstream.model.schema import StreamSchema, TableSchema
from midstream.model.words import counted, some
from midstream.operators.user_operator import OperatorSpec
from midstream.pipeline.calibration_file import with_unit_costs
from midstream.pipeline.doctor.logs import changed_files, files_read
from midstream.pipeline.outputs import dropped_next
from midstream.pipeline.reconcile import refuse_other_host, refuse_other_streams, with_streams
from midstream.pipeline.static_tables import unread
from midstream.plan.notation import read_plan
from midstream.proposals.settings import declared_optimizer
from midstream.ring.declare import AUTO
from midstream.sharing.schemes.scheme_contract import scheme
from midstream.sinks import as_sink
from midstream.sql.job_file import JobFile
from midstream.sql.job_specs import SourceSpec
from midstream.sql.parse import parse_query
from midstream.sql.place import place as place_at
from midstream.sql.toml_file import Path as Keys
from midstream.storage.places import located
from midstream.units.user_operators import result_columns

CHECKED_JOB = "checked"
"""The id of a checked job on Spark; an embedded job has none."""

_PLACES = {
    "checkpoint": "checkpoint", "sharing": "sharing", "lanes": "lanes", "workers": "workers", "spark": "[spark]",
    "optimizer": "[optimizer]",
}  # fmt: skip
"""The places of settings that the file leaves out."""


@dataclass
class CheckedJob:
    """Findings about a job file: `faults`, each with its place, and `warnings`, which name likely mistakes.

    Only Spark can read the columns of the streams in `unknown`, so the check leaves out the queries over these streams
    (`unchecked`).
    """

    faults: list[MidstreamError] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @contextmanager
    def at(self, place: str) -> Iterator[None]:
        """Record a `MidstreamError` from the `with` block as a fault at this place, unless it is recorded already."""
        try:
            yield
        except MidstreamError as error:
            if any(one.message == error.message and (one.place or "").startswith(place) for one in self.faults):
                return
            inner = "" if error.place is None or error.place in place else f", {error.place}"
            self.faults.append(type(error)(error.message, place=place + inner, remedy=error.remedy))


def checked_job(job: JobFile, embedded: bool, unread: Collection[Keys] = ()) -> CheckedJob:
    """Find the faults of a job before it starts. The check writes nothing and does not need Spark.

    `unread` has the keys with faulty values in the job file. For each of these keys, the job has the default value.
    """
    check = _Check(job, embedded, unread)
    check.settings()
    if job.checkpoint:
        check.checkpoint()
    streams = check.streams()
    check.changes_of_streams(streams)
    tables = check.tables()
    id = "" if embedded else CHECKED_JOB
    check.queries(Manifest(id, streams=streams, tables=tables, lanes=job.lanes))
    return check.found


class _Check:
    """A job file under examination, with the checkpoint that it names; each part adds its faults to `found`."""

    def __init__(self, job: JobFile, embedded: bool, unread: Collection[Keys]) -> None:
        self.job, self.embedded, self.found = job, embedded, CheckedJob()
        self.unread = unread
        self.places = {**_PLACES, **job.places}
        self.folders: Folders | None = None
        self.newest: Manifest | None = None

    def at(self, table: str, key: str = "") -> AbstractContextManager[None]:
        """Record a `MidstreamError` raised within as a fault of a key of a table, or of the table.

        Where the key could not be read, the error follows from that and is not a fault of its own.
        """
        if self.is_unread(table, *([key] if key else ())):
            return suppress(MidstreamError)
        return self.found.at(self.places.get(f"{table}.{key}") or self.places[table])

    def is_unread(self, table: str, *key: str) -> bool:
        within = (*table.split(".", 1), *key)
        return any(path[: len(within)] == within for path in self.unread)

    def settings(self) -> None:
        """Check what holds for the job as a whole."""
        with self.found.at(self.places["lanes"]):
            check_lanes(self.job.lanes)
        with self.found.at(self.places["sharing"]):
            scheme(self.job.sharing, self.places["sharing"])
        if self.embedded:
            with self.found.at(self.places["workers"]):
                workers_of(self.job.workers, checkpoint=True, limited=self.job.memory is not None)
        for setting in self.job.spark:
            with self.at("spark", setting):
                check_settings_of_spark([setting], "[spark]")
        self.optimizer("optimizer", self.job.optimizer, lambda one: replace(self.job, queries={}, optimizer=one))

    def checkpoint(self) -> None:
        """Read the job's checkpoint, if there is one, and check that this job may go on with it."""
        with self.found.at(self.places["checkpoint"]):
            self.folders = Folders(located(self.job.checkpoint))
            self.newest = self.folders.manifests.latest() if self.folders.storage.names() else None
            refuse_other_host(self.newest, EMBEDDED if self.embedded else SPARK, self.folders.root)
            if self.newest is not None and not self.unread:
                refuse_other_streams(self.newest.pushed_streams, self.job.streams, self.folders.root)
            changed: dict[str, list[str]] = {}
            for stream, file, step in changed_files(self.folders, self.newest) if self.newest is not None else ():
                changed.setdefault(stream, []).append(f"{file} (step {step})")
            for stream, files in changed.items():
                which = f"{counted(len(files), 'file')} that changed after a step read it: {some(files)}"
                self.found.warnings.append(f"stream {stream} does not read again {which}. Write new rows to a new file")

    def streams(self) -> dict[str, StreamSchema]:
        """Return the streams whose columns can be known here."""
        streams = {}
        for name, spec in self.job.streams.items():
            table = f"streams.{name}"
            if not self.parts_of_stream(table, name, spec) or self.is_unread(table):
                continue
            with self.at(table):
                newest = self.newest
                known = None if newest is None or name not in newest.streams else newest.streams[name].columns
                columns = source_columns(name, spec, known, self.embedded)
                if spec.dead_letters is not None:
                    as_sink(spec.dead_letters, "").check(None)
                for warnings_of in (folder_warnings, lateness_warnings):
                    self.found.warnings += warnings_of(name, spec)
                if columns is None:
                    self.found.unknown.append(name)
                    continue
                streams[name] = StreamSchema(
                    name,
                    columns,
                    spec.timestamp,
                    spec.lateness,
                    spec.idle_timeout,
                    spec.unit,
                    max_ahead=spec.max_ahead,
                ).in_unit()
                warnings = header_warnings(name, spec)
                self.found.warnings += warnings
                if not warnings and (
                    newest is None or (self.embedded and self.folders is not None)
                ):  # On Spark no note names the files.
                    read = {} if newest is None or self.folders is None else files_read(self.folders, newest, name)
                    self.found.warnings += row_warnings(name, spec, streams[name], read)
        return streams

    def parts_of_stream(self, table: str, name: str, spec: SourceSpec) -> bool:
        """Check each part of a stream's declaration; return whether all of them are right."""
        before = len(self.found.faults)
        for key, part in source_parts(spec, self.embedded):
            with self.at(table, key):
                check_part(name, part, self.embedded)
            if key == "format" and len(self.found.faults) > before:
                return False
        if not self.embedded:
            with self.at(table, "path"):
                check_source_path(name, spec)
        return len(self.found.faults) == before

    def changes_of_streams(self, streams: Mapping[str, StreamSchema]) -> None:
        """Check that the checkpoint's queries can go on with its streams as they are declared now."""
        newest, folders = self.newest, self.folders
        all_read = not self.unread and {*streams, *self.found.unknown} == self.job.streams.keys()
        if newest is None or folders is None or not all_read:
            return
        if newest.pushed_streams.keys() <= self.job.streams.keys():
            with self.found.at(self.places["checkpoint"]):
                now = {**streams, **_as_declared(newest, self.job, streams)}
                with_streams(newest, now, folders.root, lambda one: dropped_next(one, folders))

    def tables(self) -> dict[str, StaticTable]:
        """Return the static tables whose rows can be read."""
        tables: dict[str, StaticTable] = {}
        for name, table in self.job.tables.items():
            at, before = f"tables.{name}", len(self.found.faults)
            with self.at(at):
                refuse_taken_name("table", name, {"stream": self.job.streams, "table": tables})
            with self.at(at, "path"):
                check_table_path(name, table.path)
            if len(self.found.faults) > before or self.is_unread(at):
                continue
            with self.at(at):
                tables[name] = unread(name, table_rows(name, table).schema)
        return tables

    def queries(self, manifest: Manifest) -> None:
        """Add the queries one after the other to a manifest, which has the streams and tables that are known."""
        job = self.job
        missing = (job.streams.keys() - manifest.streams.keys()) | (job.tables.keys() - manifest.tables.keys())
        for name, query in job.queries.items():
            table = f"queries.{name}"
            self.optimizer(table, job.optimizers.get(name), partial(_of_one_query, job, name))
            allowed = query.operator is None
            with self.at(table, "operator"):
                if query.operator is not None:
                    OperatorSpec(query.operator, query.operator_options).check_allowed()
                    allowed = True
            if any(re.search(rf"\b{re.escape(other)}\b", query.sql) for other in missing):
                self.found.unchecked.append(name)
                missing.add(name)
            elif self.is_unread(table, "sql"):
                missing.add(name)
            else:
                # A command allows its operator, so none may be made of one that this program has not allowed.
                asked = query if allowed else query.like(operator=None, operator_options={})
                command = AddQuery.of(asked).allowed()
                added = self.added(manifest, table, command)
                manifest = added or manifest
                missing |= {name} if added is None else set()
            self.sink(manifest, name, query.sink)

    def sink(self, manifest: Manifest, name: str, declared: Mapping[str, Any] | None) -> None:
        """Check the sink of a query. After a fault of an option, check the sink without this option."""
        entry, option = manifest.queries.get(name), ""
        columns = None if entry is None or entry.operator is not None else result_columns(query_of(entry), None)
        while self.folders is not None:
            before = len(self.found.faults)
            with self.at(f"queries.{name}", "sink"):
                sink = new_sink(self.folders, manifest, name, None if declared is None else dict(declared))
                if sink is not None:
                    sink.check(columns)
            if len(self.found.faults) == before or declared is None:
                return
            message = self.found.faults[-1].message
            if option and option in message:  # The sink needs the option that is left out.
                self.found.faults.pop()
                return
            apart = {key: value for key, value in declared.items() if key not in ("type", "path")}
            named = (key for key, value in apart.items() if repr(key) in message or repr(value) in message)
            if not (option := next(named, "")):
                return
            declared = {key: value for key, value in declared.items() if key != option}

    def spread(self, manifest: Manifest, table: str, bare: AddQuery, command: AddQuery) -> None:
        if command.spread is not None:
            before = len(self.found.faults)
            with self.at(table, "spread"):
                taken(manifest, bare.like(spread=AUTO))
            if len(self.found.faults) > before:
                return
            with self.at(table, "nodes"):
                taken(manifest, bare.like(spread=AUTO, nodes=command.nodes))
            with self.at(table, "spread"):
                taken(manifest, bare.like(spread=command.spread))
            if len(self.found.faults) > before and "spread" in self.found.faults[-1].place:
                return
            for option, value in command.spread_options.items():
                with self.at(table, "spread_options"):
                    taken(manifest, bare.like(spread=command.spread, spread_options={option: value}))

    def optimizer(
        self, table: str, settings: Mapping[str, Any] | None, of: Callable[[dict[str, Any]], JobFile]
    ) -> None:
        """Check settings of the optimizer, each with the policy whose options they are, then all together."""
        before = len(self.found.faults)
        policy = {} if settings is None or "policy" not in settings else {"policy": settings["policy"]}
        for key, value in (settings or {}).items():
            with self.at(table, key if table == "optimizer" else "optimizer"):
                declared_optimizer(with_unit_costs(of({**policy, key: value})))
        if settings is not None and len(self.found.faults) == before:
            with self.at(table, "" if table == "optimizer" else "optimizer"):
                declared_optimizer(with_unit_costs(of(dict(settings))))

    def add(self, key: str, table: str, faults: Sequence[MidstreamError]) -> None:
        """Record faults of a key of a table, each with its place in the text of the key."""
        for fault in faults:
            place = f"{self.places.get(key) or self.places[table]}, {fault.place.removeprefix('plan, ')}"
            self.found.faults.append(type(fault)(fault.message, place=place, remedy=fault.remedy))

    def added(self, manifest: Manifest, table: str, command: AddQuery) -> Manifest | None:
        """Add a query to the manifest, without what is wrong with its plan, operator and spread. None if its SQL is
        wrong."""
        try:
            return taken(manifest, command)
        except MidstreamError as error:
            found, before = error, len(self.found.faults)
        faults, query = faults_of(command.sql, manifest.streams, manifest.table_schemas)
        self.add(f"{table}.sql", table, faults)
        if query is not None and command.plan is not None:
            self.add(f"{table}.plan", table, read_plan(command.plan, query)[1])
        if faults:
            return None
        bare = command.without_operator().like(plan=None, spread=None, nodes=None, spread_options={})
        answer = None
        with self.at(table, "sql"):
            answer = taken(manifest, bare)
        above = {"operator": command.operator, "operator_options": command.operator_options}
        parts: dict[str, dict[str, Any]] = {"plan": {"plan": command.plan}, "operator": above}
        if answer is not None:
            for key, part in parts.items():
                with self.at(table, key):
                    taken(manifest, bare.like(**part))
            self.spread(manifest, table, bare, command)
        if len(self.found.faults) == before:  # They are right each by itself, and not together.
            with self.at(table):
                raise found
        return answer


_PLACE = re.compile(r"line (\d+), column (\d+)")
_NAME = re.compile(r"""(?:"[^"]*"|[A-Za-z_]\w*)(?:\s*\.\s*(?:"[^"]*"|\w+))*|\d[\w.]*|'[^']*'""")
_FOLLOWS = re.compile(r"is not SQL|EVERY|selects nothing|reads no|'NULL'|take a null|neither in GROUP BY")
"""Faults that may come only from the NULL that takes the place of a faulty part."""
_NO_WINDOW = "has no window"
_LACKING = {_NO_WINDOW: " WINDOW 1 SECOND", "need EVERY": " EVERY 1 SECOND"}
"""The clause to add for a fault, so that the rest of the text is checked too."""
_PART = re.compile(
    r"""(?P<text>'[^']*')|(?P<open>[(\[])|(?P<close>[)\]])
    |,|\b(?:SELECT|FROM|WHERE|ON|AND|OR|BY|HAVING|WINDOW|EVERY|THEN|ELSE|WHEN)\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""The signs and words after which an item of a list, a condition or a clause begins."""
_CLAUSE = re.compile(r"\b(?:ORDER\s+BY|LIMIT|OFFSET|HAVING|WINDOW|EVERY|UNION|EXCEPT)\b|[()]|$", re.IGNORECASE)
_LEFT_OUT = re.compile(r"(ORDER BY|LIMIT|OFFSET) is not part of the language")
_UNKNOWN_STREAM = re.compile(r"unknown stream '(.*)'")
_STREAM_REMAINS = re.compile(r"unknown (?:stream|function|type)|unknown column '[^']*\.|cannot (?:take|be compared)")
"""Faults that do not come from the stream that takes the place of an unknown one."""
_ALIAS = re.compile(
    r"""\s+(?:AS\s+)?(?!(?:WHERE|JOIN|ON|WINDOW|LEFT|GROUP|USING|INNER|FULL|RIGHT|CROSS|EVERY)\b)(\w+)""", re.I
)
_MOST_FAULTS = 64

Span = tuple[int, int]
"""Where a part of a text begins, and where the text goes on after it."""


def faults_of(
    sql: str, streams: Mapping[str, StreamSchema], tables: Mapping[str, TableSchema] = MappingProxyType({})
) -> tuple[list[LanguageError], Query | None]:
    """Find every fault in a query's SQL.

    After each fault the function replaces the faulty name, call or clause, and parses the SQL again. The function
    leaves out faults that only follow from an earlier fault.

    Returns: the faults, and the query without its faulty parts. The query is None if the function cannot replace a
    fault.

    >>> A = StreamSchema("A", pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))]), "ts")
    >>> found, _ = faults_of("SELECT kk, foo(k) FROM A WHERE vv > 3", {"A": A})
    >>> [(one.message, one.place) for one in found if "column" in one.message]
    [("unknown column 'vv'", 'line 1, column 32'), ("unknown column 'kk'", 'line 1, column 8')]
    """
    found, repairs, added = list[LanguageError](), dict[Span, str](), list[str]()
    for _ in range(_MOST_FAULTS):
        text = _repaired(sql, repairs)
        try:
            return found, parse_query(text + "".join(added), streams, tables=tables)
        except LanguageError as error:
            at = _offset(text, error.place)
            at = None if at is None else _before_repairs(at, repairs)
            if error.message.startswith("unknown type") and at is not None:
                at = _call_around(sql, at)
            made = {} if at is None else _repairs_of(error.message, sql, at, streams)
            if not made or at is None:
                return found or [error], None
            span = next(iter(made))
            if not (found and _is_known(error.message, sql, span, found, repairs)):
                found.append(LanguageError(error.message, place=place_at(sql, at), remedy=error.remedy))
            clause = next((by for end, by in _LACKING.items() if error.message.endswith(end)), None)
            if clause in added or (clause is None and span in repairs):
                return found, None
            elif clause is not None:
                added = sorted([*added, clause], reverse=True)  # WINDOW before EVERY
            else:
                apart = {old: by for old, by in repairs.items() if not any(_overlap(old, one) for one in made)}
                repairs = {**apart, **made}
        except MidstreamError:
            return found, None
    return found, None


def _repairs_of(message: str, sql: str, at: int, streams: Mapping[str, StreamSchema]) -> dict[Span, str]:
    """Choose what takes the place of a faulty part, which comes first. Empty if nothing can."""
    if "has an unknown unit" in message and (unit := re.compile(r"\d+\s*\w+").match(sql, at)):
        return {unit.span(): "1 HOUR"}
    if left_out := _LEFT_OUT.match(message):
        clauses = re.compile(left_out[1].replace(" ", r"\s+"), re.IGNORECASE).finditer(sql, 0, at + len(left_out[1]))
        begin = max((one.start() for one in clauses), default=None)
        clause = None if begin is None else _CLAUSE.search(sql, max(at, begin + len(left_out[1])))
        return {} if begin is None or clause is None else {(begin, clause.start()): ""}
    span = _span(sql, at)
    if span is None:
        return {}
    if not (unknown := _UNKNOWN_STREAM.match(message)):
        return {span: "NULL"}
    if not streams:
        return {}
    alias = _ALIAS.match(sql, span[1])
    name = alias[1] if alias else unknown[1]
    columns = re.finditer(rf"\b{re.escape(name)}\s*\.\s*\w+", sql, re.IGNORECASE)
    apart = {one.span(): "NULL" for one in columns if not _overlap(one.span(), span)}
    return {span: f'"{next(iter(streams))}"{"" if alias else f" {sql[slice(*span)]}"}', **apart}


def _repaired(sql: str, repairs: Mapping[Span, str]) -> str:
    text, end = "", 0
    for (begin, after), by in sorted(repairs.items()):
        text, end = f"{text}{sql[end:begin]}{by}", after
    return text + sql[end:]


def _overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _is_known(message: str, sql: str, span: Span, found: Sequence[LanguageError], repairs: Mapping[Span, str]) -> bool:
    if ("NULL" in repairs.values() and _FOLLOWS.search(message)) or message.endswith(_NO_WINDOW):
        return True
    if any(span[0] <= begin and after <= span[1] for begin, after in repairs):
        return True
    is_other_stream = any(by not in ("NULL", "1 HOUR", "") for by in repairs.values())
    if is_other_stream and not _STREAM_REMAINS.search(message):
        return True
    if not message.startswith("unknown column"):
        part = _part_around(sql, span[0])
        places = [_offset(sql, one.place) for one in found if one.message == message]
        is_of_part = message.startswith("'") or "unknown unit" in message
        return any(at is None or not is_of_part or _part_around(sql, at) == part for at in places)
    # A column that a subquery selects is unknown outside, too, once it is NULL.
    name = sql[slice(*span)].rpartition(".")[2]
    inner = [begin for begin, after in repairs if sql[begin:after].rpartition(".")[2] == name]
    return any(_subqueries(sql, begin) > _subqueries(sql, span[0]) for begin in inner)


def _part_around(sql: str, at: int) -> int:
    """Find where the list item, condition or clause begins that a place is in."""
    parts = [0]
    for token in _PART.finditer(sql, 0, at + 1):
        if token["close"]:
            parts = parts[:-1] or [0]
        elif token["open"]:
            parts.append(token.end())
        elif not token["text"] and token.end() <= at:
            parts[-1] = token.end()
    return parts[-1]


def _subqueries(sql: str, at: int) -> int:
    depths = [0]
    for token in re.finditer(r"'[^']*'|\(\s*SELECT\b|[()]", sql[:at], re.IGNORECASE):
        if token[0] == ")":
            depths = depths[:-1] or [0]
        elif token[0][0] == "(":
            depths.append(depths[-1] + (len(token[0]) > 1))
    return depths[-1]


def _call_around(sql: str, at: int) -> int | None:
    opened: list[int] = []
    for token in re.finditer(r"'[^']*'|(\w*)\s*\(|\)", sql[:at]):
        if token[0] == ")":
            opened = opened[:-1]
        elif token[0][-1] == "(":
            opened.append(token.start())
    return opened[-1] if opened else None


def _offset(text: str, place: str) -> int | None:
    found = _PLACE.fullmatch(place)
    if found is None:
        return None
    line, column = int(found[1]), int(found[2])
    return sum(len(one) + 1 for one in text.split("\n")[: line - 1]) + column - 1


def _before_repairs(at: int, repairs: Mapping[Span, str]) -> int:
    for (begin, after), by in sorted(repairs.items()):
        if at < begin:
            break
        at = begin if at < begin + len(by) else at + after - begin - len(by)
    return at


def _span(sql: str, at: int) -> Span | None:
    """Find where the name, number, text or call at a place begins and ends; None where there is none."""
    name = _NAME.match(sql, at)
    if name is None or name[0].upper() in ("SELECT", "FROM", "WITH"):
        return None
    opened = re.compile(r"\s*\(").match(sql, name.end())
    if opened is None:
        return name.span()
    depth = 0
    for token in re.finditer(r"'[^']*'|[()]", sql[name.end() :]):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if not depth and token[0] == ")":
            return at, name.end() + token.end()
    return None


def _of_one_query(job: JobFile, name: str, settings: dict[str, Any]) -> JobFile:
    return replace(job, optimizers={name: settings}, optimizer=None)


def _as_declared(newest: Manifest, job: JobFile, known: Mapping[str, StreamSchema]) -> dict[str, StreamSchema]:
    # Columns that the file does not declare stay as they were: Spark finds them. So do the zones of timestamps, and
    # types within types, which Spark has names and zones of its own for.
    return {
        name: replace(known[name], columns=_with_zones(known[name].columns, old.columns))
        if name in known and job.streams[name].schema is not None
        else replace(old, timestamp=job.streams[name].timestamp)
        for name, old in newest.pushed_streams.items()
    }


def _with_zones(columns: pa.Schema, old: pa.Schema) -> pa.Schema:
    def kept(field: pa.Field) -> pa.Field:
        before = old.field(field.name).type if field.name in old.names else field.type
        alike = pa.types.is_timestamp(before) and pa.types.is_timestamp(field.type)
        return field.with_type(before) if alike or pa.types.is_nested(before) else field

    return pa.schema([kept(field) for field in columns])
