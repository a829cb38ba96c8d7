"""Find the columns of a job file's streams, and likely mistakes in their files, before the job starts.

The checks accept everything that only Spark can judge.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from midstream.admission.reading import read_rows
from midstream.cli.spark_job import SELF_DESCRIBING, check_spec
from midstream.embedded.file_formats import BadFile, file_rows
from midstream.embedded.file_source import MOST_FILES, FileSource
from midstream.embedded.folder_source import FolderSource, broken_links, passed_over
from midstream.embedded.sources import source_kind, source_of
from midstream.model.allowed import check_source
from midstream.model.errors import InputError, MidstreamError
from midstream.model.schema import StreamSchema
from midstream.model.words import counted, some
from midstream.sql.ddl import parse_ddl
from midstream.sql.job_specs import SourceSpec
from midstream.storage.places import located

_OWN = {
    "rate": "timestamp TIMESTAMP, value BIGINT",
    "rate-micro-batch": "timestamp TIMESTAMP, value BIGINT",
    "text": "value VARCHAR",
    "kafka": "key BINARY, value BINARY, topic VARCHAR, partition INT, offset BIGINT, timestamp TIMESTAMP, "
    "timestampType INT",
}
"""By format the columns that Spark always brings."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_FILE = re.compile(r"^file:(//(localhost)?(?=/))?")
_PATTERN = re.compile(r"[*?\[\]{}\\]")
"""What makes a path a pattern for Spark; braces are choices: `in/{2023,2024}`."""

_HADOOP = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
"""Where one of these is set, a path without a scheme may be on another file system."""


def source_columns(name: str, spec: SourceSpec, known: pa.Schema | None, embedded: bool) -> pa.Schema | None:
    """Find the columns of a stream before the job starts.

    Args:
        name: The stream.
        spec: The source as the job file declares it.
        known: The columns that the checkpoint of an embedded engine has for the stream, or None.
        embedded: Whether the embedded engine, and not Spark, reads the stream.

    Returns: the columns, or None if only Spark can find them.

    Raises:
        MidstreamError: midstream cannot read the stream.
    """
    if embedded:
        return _checked(source_of(name, spec, known))
    if (source := check_spec(name, spec)) is not None:
        return _checked(source)
    path = _path_here(spec.path)
    if spec.format in (*SELF_DESCRIBING, "text"):
        _check_path(name, spec, path)
    if spec.schema is not None:
        return parse_ddl(spec.schema)
    if spec.format in _OWN:
        return parse_ddl(_OWN[spec.format])
    # The types of other files Spark infers in its own way.
    return _of_files(name, spec, path) if spec.format == "parquet" and path is not None else None


def _checked(source: FileSource) -> pa.Schema:
    try:
        source.check()
    finally:
        source.close()
    return source.columns


def source_parts(spec: SourceSpec, embedded: bool) -> Iterator[tuple[str, SourceSpec]]:
    """Yield each part of a stream's declaration with its key, for a separate check; the format comes first."""
    if source_kind(spec.format).of_options:
        yield "options", spec
        return
    here = "." if embedded else spec.path
    bare = replace(spec, path=here, schema="k BIGINT", options={})
    yield "format", bare
    for option, value in spec.options.items():
        yield "options", replace(bare, options={option: value})
    if embedded:
        yield "path", replace(bare, path=spec.path)


def check_part(name: str, part: SourceSpec, embedded: bool) -> None:
    """Raise a `MidstreamError` if a part of a stream's declaration is wrong."""
    kind = source_kind(part.format)
    if not embedded and not kind.of_options:
        check_source(part.format, part.options, f"[streams.{name}]")
    elif kind is FolderSource or kind.of_options:  # Of others the whole tells what is wrong.
        kind.of(name, part, None)


def check_source_path(name: str, spec: SourceSpec) -> None:
    """Raise `InputError` if the files that Spark will read are missing."""
    if spec.format in (*SELF_DESCRIBING, "text"):
        _check_path(name, spec, _path_here(spec.path))


def _of_files(name: str, spec: SourceSpec, path: str) -> pa.Schema | None:
    # None where options or folders in the folder bring Spark other columns.
    if {key.lower() for key in spec.options} - {MOST_FILES}:
        return None
    if os.path.isdir(path) and any(entry.is_dir() for entry in os.scandir(path)):
        return None  # Partitions of a table, or the log of a sink.
    return FolderSource.of(name, replace(spec, path=path), None).columns


def lateness_warnings(name: str, spec: SourceSpec) -> list[str]:
    """Return a warning if a stream has no lateness, but a job reads its files in several steps.

    Rows of a later file can then be late.
    """
    most = {key.lower(): value for key, value in spec.options.items()}.get(MOST_FILES)
    if most is None or spec.lateness:
        return []
    files = "1 file" if most == "1" else f"{most} files"
    return [
        f"stream {name} has no lateness, and each step reads {files}. A row is late if it is older than the newest row "
        'of earlier files. Set how far rows may be out of order, such as lateness = "1 hour"'
    ]


def header_warnings(name: str, spec: SourceSpec) -> list[str]:
    """Return a warning if a stream has no option `header`, but its CSV files begin with the declared names."""
    options = {key.lower(): value for key, value in spec.options.items()}
    path = _path_here(spec.path) if spec.format == "csv" and spec.schema and "header" not in options else None
    if path is None or not os.path.exists(path):
        return []
    files = sorted(filter(os.path.isfile, glob.glob(f"{glob.escape(path)}/*.csv") if os.path.isdir(path) else [path]))
    separator = options.get("sep", options.get("delimiter", ","))
    declared = {column.lower() for column in parse_ddl(spec.schema or "").names}
    for file in files[:1]:
        # A file that cannot be read is a fault when a step reads it.
        with suppress(OSError), open(file, encoding="utf-8", errors="replace") as lines:
            first = lines.readline(10_000).lower().split(separator)
            if declared <= {one.strip().strip('"') for one in first}:
                return [
                    f"stream {name} reads the names in the first line of {file} as a row, which will be a dead letter. "
                    'If the files begin with names, set options = { header = "true" }'
                ]
    return []


_FIRST_FILES = 16
_FIRST_BYTES = 1 << 16
_DECIMAL_COMMA = re.compile(r"column .*: cannot read '-?[\d.]+,\d+' as")
_NO_ISO_TIME = re.compile(r"column .*: cannot read .* as (timestamp|date)")


def row_warnings(name: str, spec: SourceSpec, stream: StreamSchema, read: Collection[str]) -> list[str]:
    """Return warnings if a job cannot read the first CSV or JSON files of a stream, or their first rows.

    The function skips the files in `read` (absolute paths), because the job has already reported their faults.
    """
    path = _path_here(spec.path) if spec.format in ("csv", "json") else None
    if path is None or not os.path.exists(path):
        return []
    within = f"{glob.escape(path)}/[!_.]*" if os.path.isdir(path) else glob.escape(path)
    plain = (file for file in sorted(glob.glob(within)) if not file.lower().endswith((".gz", ".bz2", ".zst")))
    files = [file for file in plain if os.path.isfile(file)]
    found = dict[str, str]()
    for file in [one for one in files if os.path.abspath(one) not in read][:_FIRST_FILES]:
        # What only Spark can read, or cannot be read now, is a matter of the step that reads it.
        with suppress(OSError, MidstreamError):
            source = FolderSource.of(name, replace(spec, path=path), stream.columns)
            with open(file, "rb") as opened:
                data = opened.read(_FIRST_BYTES)
            if len(data) == _FIRST_BYTES:
                data = data[: data.rfind(b"\n") + 1]
            try:
                rows = file_rows(pa.py_buffer(data), file, spec.format, source.columns, source.options)
            except BadFile as error:
                if spec.on_bad_file == "stop":
                    found.setdefault("file", f"a step that reads {file} of stream {name} will fail: {error.message}")
                continue
            batches = rows.select(source.columns.names).combine_chunks().to_batches()
            reasons = read_rows(stream, batches[0]).reasons if batches else {}
            if reasons:
                # An open quote explains the values that are missing in the lines around it.
                first = next((one for one in reasons.values() if "quote" in one), reasons[min(reasons)])
                hint = ""
                if _DECIMAL_COMMA.match(first):
                    hint = ". Declare a VARCHAR, and convert it in SQL: CAST(REPLACE(x, ',', '.') AS DOUBLE)"
                elif spec.format == "csv" and _NO_ISO_TIME.match(first):
                    hint = '. Set the form of times, such as options = { timestampFormat = "dd/MM/yyyy HH:mm:ss" }'
                which = f"{len(reasons)} of the first {counted(len(batches[0]), 'row')} in {file}"
                found.setdefault("rows", f"stream {name} cannot read {which}: {first}{hint}")
    return list(found.values())


def folder_warnings(name: str, spec: SourceSpec) -> list[str]:
    """Return warnings if the folder of a stream is missing, or has entries that a job does not read."""
    path = _path_here(spec.path) if spec.format in SELF_DESCRIBING else None
    options = {key.lower() for key in spec.options}
    if path is not None and not os.path.exists(path) and not glob.has_magic(path):
        return [f"stream {name} reads {path}, which is not there yet. Correct the path, or create the folder later"]
    if path is None or not os.path.isdir(path) or "recursivefilelookup" in options:
        return []
    warnings = []
    if broken := broken_links(path):
        links = f"{counted(len(broken), 'link')} in {path} without a target: {some(broken)}"
        warnings.append(f"stream {name} does not read {links}. Restore the targets, or remove the links")
    # Java lists such a file under a name that leads to no file.
    if unnamed := sorted(repr(file) for file in os.listdir(path) if _is_not_utf8(file)):
        files = f"{counted(len(unnamed), 'file')} in {path} whose name is not UTF-8: {some(unnamed)}"
        warnings.append(f"a job on Spark does not find {files}, which are in stream {name}. Rename them")
    found = passed_over(path)
    if not found:
        return warnings
    folders = f"{counted(len(found), 'folder')} in {path}: {some(found)}"
    return [
        *warnings,
        f"stream {name} does not read {folders}. It reads only partitions such as k=5. To read the folders, write "
        f'path = "{path.rstrip("/")}/*"',
    ]


def _is_not_utf8(file: str) -> bool:
    return any("\udc80" <= letter <= "\udcff" for letter in file)


def _path_here(path: str | None) -> str | None:
    # None for a pattern, and for what is or may be on another file system.
    if path is None or _PATTERN.search(path):
        return None
    here = re.sub(_FILE, "", path)
    is_named = here != path
    return None if _SCHEME.match(here) or (not is_named and any(map(os.environ.get, _HADOOP))) else here


def _check_path(name: str, spec: SourceSpec, path: str | None) -> None:
    # Spark would not start without the folder.
    place = f"[streams.{name}]"
    if not spec.path:
        raise InputError(f"stream {name!r} has no path", place=place, remedy='name its folder: path = "..."')
    if path is not None and not os.path.exists(path):
        raise InputError(
            f"stream {name!r} reads {spec.path}, which does not exist",
            place=place,
            remedy="correct the path, which is relative to the folder of the job file, or make the folder",
        )


def check_table_path(name: str, path: str) -> None:
    """Raise `InputError` if a static table's file is missing.

    This function does not check URLs or patterns. The job checks them when it reads the table.
    """
    here = re.sub(_FILE, "", path)
    if not _SCHEME.match(here) and not glob.has_magic(here) and not os.path.exists(located(path)):
        raise InputError(
            f"table {name!r} reads {path}, which does not exist",
            place=f"[tables.{name}]",
            remedy="correct the path, which is relative to the folder of the job file, or make the file",
        )
