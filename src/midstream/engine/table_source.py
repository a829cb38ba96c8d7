"""The rows of a static table that a job file names: all the files of a path, read at once."""

from __future__ import annotations

import pyarrow as pa

from midstream.engine.folder_source import FolderSource
from midstream.language.job_specs import SourceSpec, TableSpec
from midstream.model.errors import InputError


def table_rows(name: str, spec: TableSpec) -> pa.Table:
    """The rows of a static table; raises `InputError` where its files cannot be read, or not as declared."""
    place = f"[tables.{name}]"
    read = SourceSpec(spec.format, spec.path, spec.schema, "", options=spec.options)
    source = FolderSource.of(name, read, None, place)
    files = source.waiting(())
    if not files:
        raise InputError(f"table {name!r} has no file at {spec.path}", place=place, remedy="correct its path")
    rows = source.read(files)
    try:
        return rows.cast(source.columns)
    except (pa.ArrowException, ValueError) as error:
        declared = ", ".join(f"{field.name} {field.type}" for field in source.columns)
        raise InputError(
            f"the files of table {name!r} are none of its columns: {error}",
            place=place,
            remedy=f"correct them, or its schema: {declared}",
        ) from error
