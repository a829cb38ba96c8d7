"""A folder as a source: its files in the order of their arrival, each read once."""

from __future__ import annotations

import glob
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from urllib.parse import urlsplit

import pyarrow as pa

from midstream.engine.file_formats import READERS, BadFile, file_columns, file_rows, of_file, unread_file
from midstream.engine.file_source import ON_SPARK, FileSource, known_options, most_files
from midstream.language.ddl import parse_ddl
from midstream.language.job_specs import SourceSpec
from midstream.model.errors import InputError
from midstream.state.store.objects import SCHEMES
from midstream.state.store.places import located, storage_at
from midstream.state.store.storage import Storage
from midstream.step.admission.given import one_table

_OPTIONS = {"csv": {"header", "sep", "delimiter"}}


@dataclass(frozen=True)
class FolderSource(FileSource):
    """The files right in a folder, or that a pattern gives; names that begin with `_` or `.` are passed over.

    The folder is one of this machine or the part of a bucket that a URL names; `path` is what it is called in full. A
    file must appear whole, as one does that is renamed into the folder, and not change.
    """

    path: str
    format: str
    columns: pa.Schema
    options: Mapping[str, str]
    skips: bool = False
    """Whether a file that cannot be read is one dead letter, and not the end of the job."""

    @staticmethod
    def of(name: str, spec: SourceSpec, known: pa.Schema | None, place: str = "") -> FolderSource:
        """The source of a stream of a job file; `known` are its columns where it ran before.

        Raises an `InputError` where only Spark can read it.
        """
        place = place or f"[streams.{name}]"
        if spec.format not in READERS:
            raise InputError(
                f"{name!r} has the format {spec.format!r}; the embedded engine reads {', '.join(READERS)}",
                place=place,
                remedy=ON_SPARK,
            )
        scheme = urlsplit(spec.path or "").scheme
        if not spec.path or (len(scheme) > 1 and scheme not in (*SCHEMES, "file")):
            message = f"the embedded engine reads folders and object stores, not {spec.path or 'nothing'}"
            raise InputError(message, place=place, remedy=f"name one, or {ON_SPARK}")
        options = known_options(spec, _OPTIONS.get(spec.format, set()), place)
        if spec.schema is None and spec.format == "csv":
            options = {"header": "true", **options}  # By nothing else could the columns be known, as on Spark.
        _check_separator(options, place)
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
        """The files that were not read, in order of the time they were last changed."""
        found = sorted(entry for entry in self._files() if entry[1] not in read)
        return tuple(file for _, file in found)

    def read(self, files: Sequence[str]) -> pa.Table:
        """The rows of files, one file after the other; beside them the file that each is of, for dead letters."""
        return one_table([self._rows(file) for file in files], self.columns) if files else self.columns.empty_table()

    def _rows(self, file: str) -> pa.Table:
        try:
            rows = file_rows(_content(file), file, self.format, self.columns, self.options)
        except BadFile as error:
            if not self.skips:
                raise
            return of_file(unread_file(self.columns, error.message), file)
        return of_file(rows, file)

    def forgettable(self, read: Mapping[str, int], kept: Collection[int]) -> set[str]:
        """Those that are gone from a folder in which others are.

        Of a folder that is missing or empty nothing is forgotten, for it may be back, as one that is mounted; but where
        the folder itself is gone from one in which others are, its files are gone too.
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
        """The time of the last change, and the full name, of each file there is."""
        base, patterns = _split(self.path)
        storage = storage_at(base)
        found = _matching(storage, "", patterns) if patterns else _files_at(storage)
        for moment, name in found:
            yield moment, storage.place(name) if name else base

    def _columns_of_files(self, place: str) -> pa.Schema:
        files = self.waiting(())
        if not files:
            raise InputError(
                "the columns cannot be read off the files of the folder: there is none yet",
                place=place,
                remedy='say what they are: schema = "k BIGINT, ts TIMESTAMP"',
            )
        for file in files:
            try:
                return file_columns(_content(file), file, self.format, self.options)
            except BadFile:
                if not self.skips or file == files[-1]:
                    raise
        raise AssertionError(files)


def _check_separator(options: Mapping[str, str], place: str) -> None:
    for name in ("sep", "delimiter"):
        given = options.get(name, ",")
        if len(given.encode()) != 1:
            raise InputError(
                f"the embedded engine reads values apart at one character of ASCII, not at {given!r}",
                place=place,
                remedy=f"make {name} one, or {ON_SPARK}",
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
    """The files whose names, or the names of whose folders, match the patterns level by level."""
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
            yield from ((moment, f"{inner}/{file}") for moment, file in storage.changed(inner) if file[0] not in "_.")


def _files_at(storage: Storage) -> list[tuple[int, str]]:
    """The files of a folder, or the file itself, whose name is empty then."""
    found = [(moment, name) for moment, name in storage.changed() if name[0] not in "_."]
    outer, _, own = storage.url.rpartition("/")
    if found or not own or outer.endswith("/"):
        return found
    return [(moment, "") for moment, name in storage_at(outer or os.sep).changed() if name == own]
