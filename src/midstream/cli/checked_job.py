"""What is wrong with a job file, as far as can be told before anything is started."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pyarrow as pa

from midstream.checkpoint.folders import Folders
from midstream.checkpoint.new_sink import new_sink
from midstream.cli.source_columns import check_table_path, source_columns
from midstream.engine.table_source import table_rows
from midstream.job.calibration_file import with_unit_costs
from midstream.job.dropped_next import dropped_next
from midstream.job.reconcile import refuse_new_name, refuse_other_host, refuse_other_streams, with_streams
from midstream.job.static_tables import unread
from midstream.language.job_file import JobFile
from midstream.language.job_specs import QuerySpec
from midstream.model.allowed_sources import check_settings_of_spark
from midstream.model.command import declare_operator
from midstream.model.errors import MidstreamError
from midstream.model.language_rules import PRESENT
from midstream.model.manifest import EMBEDDED, SPARK, Manifest, StaticTable
from midstream.model.schema import StreamSchema
from midstream.operators.user_operator import OperatorSpec
from midstream.sharing.discovery import scheme
from midstream.state.store.places import located
from midstream.step.commands.add_query import AddQuery
from midstream.step.commands.base import taken
from midstream.step.commands.rescale import check_lanes
from midstream.step.reviewing.settings import declared_optimizer


@dataclass
class CheckedJob:
    """What a look at a job file found: `faults`, each with its place, and the streams of `unknown` columns, which only
    Spark can read, so that queries over them (`unchecked`) were not looked into.
    """

    faults: list[MidstreamError] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)

    @contextmanager
    def at(self, place: str) -> Iterator[None]:
        """A `MidstreamError` raised within is a fault of this place; one that it has already is told once."""
        try:
            yield
        except MidstreamError as error:
            if any(one.message == error.message and (one.place or "").startswith(place) for one in self.faults):
                return
            inner = "" if error.place is None or error.place in place else f", {error.place}"
            self.faults.append(type(error)(error.message, place=place + inner, remedy=error.remedy))


def checked_job(job: JobFile, embedded: bool) -> CheckedJob:
    """All that is wrong with a job, as far as its files tell; nothing is written, and Spark is not needed."""
    found = CheckedJob()
    places = {"checkpoint": "checkpoint", "sharing": "sharing", "lanes": "lanes", "spark": "[spark]", **job.places}
    with found.at(places["lanes"]):
        check_lanes(job.lanes)
    with found.at(places["sharing"]):
        scheme(job.sharing, places["sharing"])
    with found.at(places["spark"]):
        check_settings_of_spark(job.spark, "[spark]")
    with found.at(places.get("optimizer", "[optimizer]")):
        declared_optimizer(with_unit_costs(replace(job, queries={})))
    folders, newest = None, None
    with found.at(places["checkpoint"]):
        folders = Folders(located(job.checkpoint))
        newest = folders.manifests.latest() if folders.storage.names() else None
        refuse_other_host(newest, EMBEDDED if embedded else SPARK, folders.root)
        if newest is not None:
            refuse_other_streams(newest.pushed_streams, job.streams, folders.root)
    streams = {}
    for name, spec in job.streams.items():
        with found.at(places[f"streams.{name}"]):
            known = None if newest is None or name not in newest.streams else newest.streams[name].columns
            columns = source_columns(name, spec, known, embedded)
            if columns is None:
                found.unknown.append(name)
            else:
                streams[name] = StreamSchema(
                    name, columns, spec.timestamp, spec.lateness, spec.idle_timeout, spec.unit
                ).in_unit()
    all_read = {*streams, *found.unknown} == job.streams.keys()
    if newest is not None and folders is not None and all_read and newest.pushed_streams.keys() <= job.streams.keys():
        with found.at(places["checkpoint"]):
            there, now = folders, {**streams, **_as_declared(newest, job, streams)}
            with_streams(newest, now, folders.root, lambda one: dropped_next(one, there))
    tables: dict[str, StaticTable] = {}
    for name, table in job.tables.items():
        with found.at(places[f"tables.{name}"]):
            refuse_new_name("table", name, {"stream": job.streams, "table": tables}, lambda: newest)
            check_table_path(name, table.path)
            tables[name] = unread(name, table_rows(name, table).schema)
    host = "" if embedded else "checked"
    begun = Manifest(host, streams=streams, tables=tables, lanes=job.lanes).under(
        PRESENT if newest is None else newest.rules
    )
    _check_queries(found, job, places, folders, begun)
    return found


def _as_declared(newest: Manifest, job: JobFile, known: Mapping[str, StreamSchema]) -> dict[str, StreamSchema]:
    """The streams of a checkpoint as a job file declares them now, as far as that is said in both.

    Columns that the file does not declare stay as they were: Spark finds them. So do the zones of timestamps, and types
    within types, which Spark has names and zones of its own for.
    """
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


def _check_queries(
    found: CheckedJob, job: JobFile, places: Mapping[str, str], folders: Folders | None, manifest: Manifest
) -> None:
    missing = (job.streams.keys() - manifest.streams.keys()) | (job.tables.keys() - manifest.tables.keys())
    for name, query in job.queries.items():
        place = places[f"queries.{name}"]
        with found.at(place):
            declared_optimizer(with_unit_costs(replace(job, queries={name: query}, optimizer=None)))
        with found.at(place):
            # Together: the command allows its operator, so none may be made of one that this program has not allowed.
            if query.operator is not None:
                OperatorSpec(query.operator, query.operator_options or {}).check_allowed()
            if any(re.search(rf"\b{re.escape(stream)}\b", query.sql) for stream in missing):
                found.unchecked.append(name)
            else:
                manifest = taken(manifest, _command(name, query))
        with found.at(place):
            if folders is not None:
                new_sink(folders, manifest, name, dict(query.sink))


def _command(name: str, query: QuerySpec) -> AddQuery:
    above = declare_operator(query.operator, query.operator_options)
    over = (query.spread, query.nodes, dict(query.spread_options or {}))
    return AddQuery(name, query.sql, query.plan, dict(query.sink), above, query.history, *over)
