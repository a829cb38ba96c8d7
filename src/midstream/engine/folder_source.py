"""A folder as a source: its files in the order of their arrival, each read once."""

from __future__ import annotations

import glob
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa

from midstream.engine.file_formats import READERS, file_columns
from midstream.language.ddl import parse_ddl
from midstream.language.job_file import SourceSpec
from midstream.model.errors import InputError
from midstream.state.store.disk import cannot_read

MOST_FILES = "maxfilespertrigger"
_OPTIONS = {"csv": {"header", "sep", "delimiter", MOST_FILES}, "json": {MOST_FILES}, "parquet": {MOST_FILES}}
_RESULTS = "midstream"
_ON_SPARK = "run the job on Spark: midstream run --engine spark"


@dataclass(frozen=True)
class FolderSource:
    """The files right in a folder, or that a pattern gives; names that begin with `_` or `.` are passed over.

    A file must appear whole, as one does that is renamed into the folder, and not change.
    """

    path: str
    format: str
    columns: pa.Schema
    options: Mapping[str, str]

    @staticmethod
    def of(name: str, spec: SourceSpec, known: pa.Schema | None) -> FolderSource:
        """The source of a stream of a job file; `known` are its columns where it ran before.

        Raises an `InputError` where only Spark can read it.
        """
        place = f"[streams.{name}]"
        if spec.format not in READERS:
            raise InputError(
                f"stream {name!r} has the format {spec.format!r}; the embedded engine reads {', '.join(READERS)}",
                place=place,
                remedy=_ON_SPARK,
            )
        if not spec.path or (len(urlsplit(spec.path).scheme) > 1 and not spec.path.startswith("file:")):
            message = f"the embedded engine reads folders of this machine, not {spec.path or 'nothing'}"
            raise InputError(message, place=place, remedy=f"name a folder, or {_ON_SPARK}")
        options = {key.lower(): value for key, value in spec.options.items()}
        if unknown := sorted(options.keys() - _OPTIONS[spec.format]):
            raise InputError(
                f"the embedded engine knows no option {unknown[0]!r} of {spec.format}", place=place, remedy=_ON_SPARK
            )
        path = spec.path.removeprefix("file://").removeprefix("file:")
        if spec.schema is None and spec.format == "csv":
            options = {"header": "true", **options}  # By nothing else could the columns be known, as on Spark.
        source = FolderSource(os.path.abspath(path), spec.format, pa.schema([]), options)
        if spec.schema is not None:
            columns = parse_ddl(spec.schema)
        elif known is not None:
            columns = known
        else:
            columns = source._columns_of_files(place)
        return FolderSource(source.path, source.format, columns, options)

    def waiting(self, read: Collection[str]) -> tuple[str, ...]:
        """The files that were not read, in order of the time they were last changed, as many as a step takes."""
        found = sorted(entry for entry in self._files() if entry[1] not in read)
        most = self.options.get(MOST_FILES)
        return tuple(file for _, file in (found if most is None else found[: max(1, int(most))]))

    def read(self, files: Sequence[str]) -> pa.Table:
        """The rows of files, one file after the other."""
        tables = [READERS[self.format](file, self.columns, self.options) for file in files]
        return pa.concat_tables(tables, promote_options="permissive") if tables else self.columns.empty_table()

    def _files(self) -> list[tuple[int, str]]:
        places = sorted(glob.glob(self.path)) if glob.has_magic(self.path) else [self.path]
        return [file for place in places for file in _files_at(place)]

    def _columns_of_files(self, place: str) -> pa.Schema:
        files = self.waiting(())
        if not files:
            raise InputError(
                "the columns cannot be read off the files of the folder: there is none yet",
                place=place,
                remedy='say what they are: schema = "k BIGINT, ts TIMESTAMP"',
            )
        return file_columns(files[0], self.format, self.options)


def _files_at(place: str) -> list[tuple[int, str]]:
    """The files of a folder, or a file itself, with the time of their last change."""
    try:
        if os.path.isfile(place):
            return [(os.stat(place).st_mtime_ns, place)]
        with os.scandir(place) as entries:
            shown = [entry for entry in entries if entry.name[0] not in "_." and entry.is_file()]
            return [(entry.stat().st_mtime_ns, str(Path(place) / entry.name)) for entry in shown]
    except FileNotFoundError:  # It may come later, as its files do.
        return []
    except OSError as error:
        raise cannot_read(error, place) from error
