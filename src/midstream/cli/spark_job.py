"""A job file made a job: its streams read by Spark, its queries declared."""

from __future__ import annotations

import os
from dataclasses import replace
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from midstream.embedded.file_source import FileSource
from midstream.embedded.folder_source import FolderSource
from midstream.embedded.sources import source_kind
from midstream.model.columns_of_files import own_names
from midstream.model.errors import InputError
from midstream.model.spark_cause import stream_error

if TYPE_CHECKING:
    from midstream.spark.job import Job
    from midstream.sql.job_file import JobFile
    from midstream.sql.job_specs import SourceSpec

SELF_DESCRIBING = ("parquet", "orc", "avro", "csv", "json")
"""Formats of files whose schema can be read from the files that are there."""

TEXTS = ("csv", "json")
"""Formats whose values are text, to be read as declared."""

READING_OPTIONS = {"dateformat", "timestampformat", "timestampntzformat", "locale", "mode"}
"""Options, in small letters, that say how Spark shall read values from text."""

WHICH_FILES = {
    "maxfilespertrigger", "maxbytespertrigger", "maxfileage", "maxcachedfiles", "discardcachedinputratio",
    "latestfirst", "filenameonly", "pathglobfilter", "modifiedbefore", "modifiedafter",
}  # fmt: skip
"""Options, in small letters, that say which files come when, and nothing of how they are read."""

_HADOOP = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
"""Where one of these is set, a path without a scheme may be on another file system."""

_TYPE_OF_TIMES = "spark.sql.timestampType"


def job_of(session: Any, file: JobFile) -> Job:
    """Build the job that a job file describes, without starting it."""
    import midstream as ms
    from midstream.embedded.folder_source import table_rows
    from midstream.expr.duration import parse_duration
    from midstream.pipeline.calibration_file import with_unit_costs
    from midstream.pipeline.patience import PATIENCE
    from midstream.proposals.settings import declared_optimizer
    from midstream.spark.declared import arrow_schema, as_read, declared_schema
    from midstream.spark.whole_files import WholeFiles

    for name, spec in file.streams.items():
        check_spec(name, spec)
    options = {"patience": file.patience, "memory": file.memory}
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    patience = parse_duration(given.get("patience", PATIENCE), what="patience")
    job: Job = ms.Job(session, checkpoint=file.checkpoint, lanes=file.lanes, sharing=file.sharing, **given)
    for name, spec in file.streams.items():
        declared = None if spec.schema is None else declared_schema(spec.schema, f"[streams.{name}]")
        columns = None if declared is None else arrow_schema(declared)
        own, source = source_kind(spec.format).on_spark, folder_of(name, spec)
        frame: Any
        if own is not None:
            frame = resolve_name(own)(session, name, spec, patience)
        elif source is None:
            frame = _read(session, name, spec, None if declared is None else as_read(declared))
        else:
            columns = arrow_schema(_inferred(session, name, spec)) if columns is None else columns
            which = {key: value for key, value in spec.options.items() if key.lower() in WHICH_FILES}
            frame = WholeFiles.of(session, replace(source, columns=columns), spec.path or "", which)
        timing = (spec.timestamp, spec.lateness, spec.idle_timeout)
        job.stream(name, frame, *timing, columns, spec.unit, spec.max_ahead, spec.dead_letters)
    for name, table in file.tables.items():
        job.table(name, table_rows(name, table))
    for query in file.queries.values():
        job.declare_query(query)
    for name, settings in declared_optimizer(with_unit_costs(file)).items():
        job.declare_optimizer(name, settings)
    return job


def check_spec(name: str, spec: SourceSpec) -> FileSource | None:
    """Make midstream's source for a stream of a job on Spark, or return None if Spark reads the stream itself.

    Raises an `InputError` if Spark cannot read the stream.
    """
    source = source_kind(spec.format).for_spark(name, spec)
    if spec.on_bad_file == "skip" and folder_of(name, spec) is None:
        raise InputError(
            f"stream {name!r} has on_bad_file, but Spark itself reads the stream and does not report bad files",
            place=f"[streams.{name}]",
            remedy="leave on_bad_file out, or run the job with --engine embedded",
        )
    return source


def folder_of(name: str, spec: SourceSpec) -> FolderSource | None:
    """Return midstream's source for the folder of a stream, or None if Spark reads the folder itself."""
    scheme = urlsplit(spec.path or "").scheme
    here = scheme == "file" or not (scheme or any(map(os.environ.get, _HADOOP)))
    if not spec.path or not here or "{" in spec.path:
        return None
    reading = {key: value for key, value in spec.options.items() if key.lower() not in WHICH_FILES}
    if spec.schema is None and spec.format == "csv":
        reading = {"header": "true", **reading}
    try:
        return FolderSource.of(name, replace(spec, schema="k BIGINT", options=reading), None)
    except InputError:
        return None


def _read(session: Any, name: str, spec: SourceSpec, declared: Any) -> Any:
    inferred = declared is None and spec.path is not None and spec.format in SELF_DESCRIBING
    # Without a schema, the columns of a CSV file can only be known by its header.
    header = {"header": "true", "inferSchema": "true"} if inferred and spec.format == "csv" else {}
    # A file whose header has another order would be read wrong without a word: Spark goes by positions.
    checked = {"enforceSchema": "false"} if spec.format == "csv" else {}
    options = {**checked, **header, **spec.options}
    reader = session.readStream.format(spec.format).options(**options)
    schema = _inferred(session, name, spec) if inferred else _given(session, spec, declared, options)
    reader = reader.schema(schema) if schema is not None else reader
    try:
        return reader.load(spec.path) if spec.path else reader.load()
    except Exception as error:  # Spark has no common class for what its sources raise.
        raise stream_error(name, error, "correct its format, path, schema or options") from error


def _given(session: Any, spec: SourceSpec, declared: Any, options: dict[str, str]) -> Any:
    # No value may be lost before it can be read. So Spark brings the values of text files as text, and those of files
    # that know their own types in these types, where a declared type might not hold them. Options that say how values
    # are written leave it to Spark to read them; it gives NULL for what it cannot read.
    from midstream.spark.declared import as_found, as_text, with_corrupt_lines

    if declared is None or spec.format not in SELF_DESCRIBING:
        return declared
    if spec.format in TEXTS:
        read_by_spark = READING_OPTIONS & {key.lower() for key in options}
        columns = declared if read_by_spark else as_text(declared)
        if spec.format == "csv":
            return _by_header(session, spec, columns, options)
        return columns if read_by_spark else with_corrupt_lines(columns)
    try:
        own = session.read.format(spec.format).options(**options).load(spec.path).schema
    except Exception:  # There is no file yet; Spark has no common class for that.
        return declared
    return as_found(declared, own)


def _by_header(session: Any, spec: SourceSpec, declared: Any, options: dict[str, str]) -> Any:
    # CSV files are read by the order of their header, if they have one, with the other columns that it names.
    from midstream.spark.declared import in_order

    if {key.lower(): value for key, value in options.items()}.get("header", "false").lower() != "true":
        return declared
    try:
        header = session.read.format("csv").options(**options).load(spec.path).columns
    except Exception:  # There is no file yet; Spark has no common class for that.
        return declared
    own = own_names(declared.names, header)
    if header and (lacking := [name for name in declared.names if name not in own]):
        raise InputError(
            f"the header of the files lacks the columns {', '.join(map(repr, lacking))}; it has {', '.join(header)}",
            place=f"{spec.path}",
            remedy="correct the files, or the schema",
        )
    return in_order(declared, {given: name for name, given in own.items()}, header) if header else declared


def _inferred(session: Any, name: str, spec: SourceSpec) -> Any:
    # Without a schema, the columns of a CSV file can only be known by its header.
    header = {"header": "true", "inferSchema": "true"} if spec.format == "csv" else {}
    options = {**header, **spec.options}
    before = session.conf.get(_TYPE_OF_TIMES)
    try:
        # A text of a time without a zone is a TIMESTAMP without one.
        session.conf.set(_TYPE_OF_TIMES, "TIMESTAMP_NTZ")
        return session.read.format(spec.format).options(**options).load(spec.path).schema
    except Exception as error:  # Spark has no common class for what its sources raise.
        raise stream_error(name, error, 'declare the columns: schema = "k BIGINT, ts TIMESTAMP"') from error
    finally:
        session.conf.set(_TYPE_OF_TIMES, before)
