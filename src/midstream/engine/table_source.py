"""The rows of a static table that a job file names: all the files of a path, read at once."""

from __future__ import annotations

import pyarrow as pa

from midstream.engine.folder_source import FolderSource
from midstream.language.job_specs import SourceSpec, TableSpec
from midstream.model.errors import InputError
from midstream.step.admission.mixed import Mixed, read_of, reasons_of


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
            f"the files of table {name!r} are none of its columns: {error}",
            place=place,
            remedy=f"correct them, or its schema: {declared}",
        ) from error


def _as_read(name: str, rows: pa.Table, place: str) -> pa.Table:
    # Nested columns have values that were read one by one, of which some may be of another type.
    for at, field in enumerate(rows.schema):
        if isinstance(field.type, Mixed):
            chunks = rows.column(at).chunks
            if reason := next((text for chunk in chunks for text in reasons_of(chunk).values()), None):
                raise InputError(f"table {name!r}: {reason}", place=place, remedy="correct its files, or its schema")
            values = pa.chunked_array([read_of(chunk) for chunk in chunks], field.type.storage_type.field("read").type)
            rows = rows.set_column(at, field.name, values)
    return rows
