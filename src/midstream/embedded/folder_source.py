"""A folder as a source: its files in the order of their arrival, each read once; or all at once, as a static table."""

from __future__ import annotations

import glob
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import ClassVar
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from midstream.admission.given import one_table
from midstream.admission.mixed import Mixed, read_of, reasons_of
from midstream.admission.refused_rows import CORRUPT, FILE
from midstream.embedded.file_formats import (
    READERS,
    TIME_PATTERNS,
    BadFile,
    file_columns,
    file_rows,
    of_file,
    time_pattern,
    unread_file,
)
from midstream.embedded.file_source import ON_SPARK, FileSource, known_options, most_files
from midstream.model.columns_of_files import own_names
from midstream.model.errors import InputError, ReadError
from midstream.sql.ddl import parse_ddl
from midstream.sql.job_specs import SourceSpec, TableSpec
from midstream.storage.objects import SCHEMES
from midstream.storage.places import located, storage_at
from midstream.storage.storage_contract import Storage

_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
"""The value of a partition whose column is NULL."""

_DECLARE = 'declare the columns: schema = "k BIGINT, ts TIMESTAMP"'

_OPTIONS = {"csv": {"header", "sep", "delimiter", "nullvalue", "timestampformat", "dateformat", "multiline"}}


@dataclass(frozen=True)
class FolderSource(FileSource):
    """The files right in a folder, or that a pattern gives; names that begin with `_` or `.` are passed over.

    So are folders within, unless they are partitions, such as `k=5`: their files are read too, each with the values
    that the names of its folders give its columns, as Spark does. The folder is one of this machine or the part of a
    bucket that a URL names; `path` is what it is called in full. A file must appear whole, as one does that is renamed
    into the folder, and not change.
    """

    name: ClassVar[str] = "files"

    path: str
    format: str
    columns: pa.Schema
    options: Mapping[str, str]
    skips: bool = False
    """Whether a file that cannot be read is one dead letter, and not the end of the job."""

    @staticmethod
    def of(name: str, spec: SourceSpec, known: pa.Schema | None = None, place: str = "") -> FolderSource:
        """Make the source of a stream of a job file; `known` are its columns where it ran before.

        Raises an `InputError` where only Spark can read it.
        """
        place = place or f"[streams.{name}]"
        if spec.format not in READERS:
            raise InputError(
                f"the embedded engine cannot read the format {spec.format!r} of {name!r}, only {', '.join(READERS)}",
                place=place,
                remedy=ON_SPARK,
            )
        scheme = urlsplit(spec.path or "").scheme
        if not spec.path or (len(scheme) > 1 and scheme not in (*SCHEMES, "file")):
            message = f"the embedded engine reads folders and object stores, not {spec.path or 'nothing'}"
            raise InputError(message, place=place, remedy=f"name a folder or an object store, or {ON_SPARK}")
        options = known_options(spec, _OPTIONS.get(spec.format, set()), place)
        if spec.schema is None and spec.format == "csv":
            options = {"header": "true", **options}  # By nothing else could the columns be known, as on Spark.
        _check_separator(options, place)
        for name in ("timestampFormat", "dateFormat"):
            if (pattern := options.get(name.lower())) is not None and time_pattern(pattern) is None:
                message = f"{name} {pattern!r} has more than years, months, days, hours, minutes, seconds and an offset"
                raise InputError(message, place=place, remedy=f"write {TIME_PATTERNS}; or {ON_SPARK}")
        base, patterns = _split(spec.path)
        skips = spec.on_bad_file == "skip"
        source = FolderSource("/".join([located(base), *patterns]), spec.format, pa.schema([]), options, skips)
        if spec.schema is not None:
            columns = parse_ddl(spec.schema)
        elif known is not None:
            columns = known
        else:
            columns = source._columns_of_files(place)
        return FolderSource(source.path, source.format, columns, options, skips)

    @property
    def most(self) -> int | None:
        """How many files a step takes at most; None for all."""
        return most_files(self.options)

    def waiting(self, read: Collection[str]) -> tuple[str, ...]:
        """List the files that were not read, in order of the time they were last changed."""
        found = sorted(entry for entry in self._files() if entry[1] not in read)
        return tuple(file for _, file in found)

    def read(self, files: Sequence[str]) -> pa.Table:
        """Read the rows of files, one file after the other, with the file that each is of, for dead letters."""
        return one_table([self._rows(file) for file in files], self.columns) if files else self.columns.empty_table()

    def _rows(self, file: str) -> pa.Table:
        given = self._partition(file)
        named = own_names(self.columns.names, list(given))
        own = [field for field in self.columns if field.name not in named] or [self.columns.field(0)]
        try:
            rows = file_rows(_content(file), file, self.format, pa.schema(own), self.options)
        except BadFile as error:
            if not self.skips:
                raise
            return of_file(unread_file(self.columns, error.message), file)
        if named:
            values = {name: pa.array([given[folder]] * rows.num_rows, pa.string()) for name, folder in named.items()}
            found = {name: values[name] if name in named else rows.column(name) for name in self.columns.names}
            more = {name: rows.column(name) for name in rows.column_names if name not in found}
            rows = pa.table({**found, **more})
        return of_file(rows, file)

    @property
    def beside(self) -> tuple[str, ...]:
        """Name the file, and the line that is not JSON."""
        return (CORRUPT, FILE) if self.format == "json" else (FILE,)

    def has(self, file: str) -> bool:
        """Return whether a file of the folder, or of one within, is among those that are read."""
        base, patterns = _split(self.path)
        if not file.startswith(f"{base}/"):
            return True
        folders = file.removeprefix(f"{base}/").split("/")[len(patterns) : -1]
        return all("=" in folder and folder[0] not in "_." for folder in folders)

    def _partition(self, file: str) -> dict[str, str | None]:
        # The names of folders such as k=5 give values to columns.
        base = _split(self.path)[0]
        folders = file.removeprefix(base).split("/")[:-1]
        pairs = (folder.partition("=") for folder in folders if "=" in folder)
        return {unquote(name): None if value == _HIVE_NULL else unquote(value) for name, _, value in pairs}

    def forgettable(self, read: Mapping[str, int], kept: Collection[int]) -> set[str]:
        """Choose the files that are gone from a folder in which others are.

        Of a folder that is missing or empty nothing is forgotten, because it may be back, as one that is mounted; but
        where the folder itself is gone from one in which others are, its files are gone too.
        """
        base = _split(self.path)[0]

        @cache
        def names(folder: str) -> frozenset[str]:
            return frozenset(name for name in storage_at(folder).names() if name[0] not in "_.")

        def is_gone(place: str) -> bool:
            if not place.startswith(f"{base}/"):
                return False
            folder, _, name = place.rpartition("/")
            return name not in names(folder) if names(folder) else is_gone(folder)

        return {file for file in read if is_gone(file)}

    def _files(self) -> Iterator[tuple[int, str]]:
        # With the time of the last change.
        base, patterns = _split(self.path)
        storage = storage_at(base)
        found = _matching(storage, "", patterns) if patterns else _files_at(storage)
        for moment, name in found:
            yield moment, storage.place(name) if name else base

    def _columns_of_files(self, place: str) -> pa.Schema:
        files = self.waiting(())
        partitions: dict[str, list[str]] = {}
        for file in files:
            for name, value in self._partition(file).items():
                partitions.setdefault(name, []).extend(() if value is None else (value,))
        for file in files:
            try:
                found = file_columns(_content(file), file, self.format, self.options)
                if not found.names:
                    continue  # It is empty.
                own = [field for field in found if field.name not in partitions]
                return pa.schema([*own, *((name, _type_of(values)) for name, values in partitions.items())])
            except BadFile as error:
                if self.skips and file != files[-1]:
                    continue
                if self.format == "parquet":
                    raise
                remedy = f"{error.remedy}; or {_DECLARE}"
                raise BadFile(error.message, place=error.place, remedy=remedy) from error
        files_there = "all files in the folder are empty" if files else "the folder has no files yet"
        raise InputError(f"midstream cannot find the columns, because {files_there}", place=place, remedy=_DECLARE)


def _type_of(values: Sequence[str]) -> pa.DataType:
    """Return the type of a column whose values names of folders give, as Spark infers it.

    >>> _type_of(["5", "12"]), _type_of(["5", "1.5"]), _type_of(["2024-01-31"]), _type_of(["a", "5"])
    (DataType(int32), DataType(double), DataType(date32[day]), DataType(string))
    """
    texts = pa.array(values, pa.string())
    for kind in (pa.int32(), pa.int64(), pa.float64(), pa.date32()) if values else ():
        with suppress(pa.ArrowInvalid):
            texts.cast(kind)
            return kind
    return pa.string()


def passed_over(path: str) -> list[str]:
    """Return the folders within a folder, or in what a pattern gives, that are not partitions and so are not read."""
    base, patterns = _split(path)
    if patterns:
        return []
    storage = storage_at(located(base))
    known = {*broken_links(path), *(name for _, name in storage.changed())}
    return sorted(name for name in storage.names() if name not in known and name[0] not in "_." and "=" not in name)


def broken_links(path: str) -> list[str]:
    """Return the symbolic links in a folder of this machine that lead nowhere, so that no step reads them."""
    base, _ = _split(path)
    if not os.path.isdir(base):
        return []
    with os.scandir(base) as entries:
        return sorted(one.name for one in entries if one.is_symlink() and not os.path.exists(one.path))


def _check_separator(options: Mapping[str, str], place: str) -> None:
    for name in ("sep", "delimiter"):
        given = options.get(name, ",")
        if len(given.encode()) != 1:
            raise InputError(
                f"the embedded engine needs one ASCII character between values, not {given!r}",
                place=place,
                remedy=f"use one ASCII character, or {ON_SPARK}",
            )


def _content(file: str) -> pa.Buffer:
    folder, _, name = file.rpartition("/")
    return storage_at(folder or os.sep).read(name)


def _split(path: str) -> tuple[str, list[str]]:
    """The folder that a pattern begins in, and a pattern for each level below it.

    >>> _split("s3://bucket/in/2*/*.json"), _split("/data/in"), _split("*.csv")
    (('s3://bucket/in', ['2*', '*.json']), ('/data/in', []), ('.', ['*.csv']))
    """
    levels = path.split("/")
    fixed = next((at for at, level in enumerate(levels) if glob.has_magic(level)), len(levels))
    return ("/".join(levels[:fixed]) or "/") if fixed else ".", levels[fixed:]


def _matching(storage: Storage, folder: str, patterns: Sequence[str]) -> Iterator[tuple[int, str]]:
    pattern, *deeper = patterns
    files = {} if deeper else {name: moment for moment, name in storage.changed(folder)}
    for name in storage.names(folder):
        if name[0] in "_." or not fnmatchcase(name, pattern):
            continue
        inner = f"{folder}/{name}" if folder else name
        if deeper:
            yield from _matching(storage, inner, deeper)
        elif name in files:
            yield files[name], inner
        else:
            yield from _below(storage, inner)


def _below(storage: Storage, folder: str) -> Iterator[tuple[int, str]]:
    found = {name: moment for moment, name in storage.changed(folder) if name[0] not in "_."}
    for name, moment in found.items():
        yield moment, f"{folder}/{name}" if folder else name
    for name in _names(storage, folder):
        if "=" in name and name not in found and name[0] not in "_.":
            yield from _below(storage, f"{folder}/{name}" if folder else name)


def _names(storage: Storage, folder: str) -> list[str]:
    try:
        return storage.names(folder)
    except ReadError as error:
        if isinstance(error.__cause__, NotADirectoryError):
            return []
        raise


def _files_at(storage: Storage) -> list[tuple[int, str]]:
    """Return the files of a folder, or the file itself, whose name is empty then."""
    found = list(_below(storage, ""))
    outer, _, own = storage.url.rpartition("/")
    if found or not own or outer.endswith("/"):
        return found
    return [(moment, "") for moment, name in storage_at(outer or os.sep).changed() if name == own]


def table_rows(name: str, spec: TableSpec) -> pa.Table:
    """Read the rows of a static table; raises `InputError` where its files cannot be read, or not as declared."""
    place = f"[tables.{name}]"
    read = SourceSpec(spec.format, spec.path, spec.schema, "", options=spec.options)
    source = FolderSource.of(name, read, None, place)
    files = source.waiting(())
    if not files:
        raise InputError(f"table {name!r} has no file at {spec.path}", place=place, remedy="correct its path")
    rows = _as_read(name, source.read(files).select(source.columns.names), place)
    try:
        return rows.cast(source.columns)
    except (pa.ArrowException, ValueError) as error:
        declared = ", ".join(f"{field.name} {field.type}" for field in source.columns)
        raise InputError(
            f"the files of table {name!r} do not fit its columns:  {error}",
            place=place,
            remedy=f"correct the files, or the table's schema: {declared}",
        ) from error


def _as_read(name: str, rows: pa.Table, place: str) -> pa.Table:
    # Nested columns have values that were read one by one, of which some may be of another type.
    for at, field in enumerate(rows.schema):
        if isinstance(field.type, Mixed):
            chunks = rows.column(at).chunks
            if reason := next((text for chunk in chunks for text in reasons_of(chunk).values()), None):
                raise InputError(
                    f"table {name!r}: {reason}", place=place, remedy="correct the table's files or its schema"
                )
            values = pa.chunked_array([read_of(chunk) for chunk in chunks], field.type.storage_type.field("read").type)
            rows = rows.set_column(at, field.name, values)
    return rows
