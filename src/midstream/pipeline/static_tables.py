"""Static tables as users give them: rows of any kind, put into the store before a command names them."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Generic, TypeVar

import pyarrow as pa

from midstream.commands.set_table import SetTable
from midstream.model.errors import InputError
from midstream.model.manifest import ChunkRef, StaticTable
from midstream.model.schema import TableSchema, check_name, without_runs
from midstream.pipeline.frames import Rows, static_rows
from midstream.state.chunk_store import ChunkStore, store_chunk
from midstream.state.rows import one_batch
from midstream.storage.sweep import TABLES

Receipt = TypeVar("Receipt")


class TableControl(ABC, Generic[Receipt]):
    """What can be commanded of static tables while queries run."""

    def table(self, name: str, rows: Rows) -> Receipt:
        """Give a static table its rows, or replace them, beginning with the next step.

        `rows` are an Arrow table, batch or reader, a frame of pandas or Polars, or a list of dicts. A query names the
        table in FROM like a stream; each row of the stream meets the version of the table that is valid in the step in
        which it comes in, and `name._version` says which. Rows that are those of the present version make no new one.
        Columns stay as they are while a query reads them.
        """
        return self._set_table(name, rows)

    @abstractmethod
    def _set_table(self, name: str, rows: Rows) -> Receipt:
        """Store the rows, and let the next step take the command."""


def unread(name: str, columns: pa.Schema) -> StaticTable:
    """Make a static table of these columns that queries are checked against, and that nobody reads."""
    return StaticTable(TableSchema(name, columns), ChunkRef("", 0, 0, 0), "")


def set_table(
    name: str, rows: Rows, known: Mapping[str, StaticTable], store: ChunkStore, step: int, declared: str = ""
) -> SetTable:
    """Put the rows of a table into the store, and make the command that sets them.

    `known` are the tables as the commands that wait will leave them, `step` is the newest one, which goes into the
    chunk's name: so no two versions share a chunk. Rows of the digest that was `declared` last are not stored, since
    nobody will set them. Raises InputError for rows that do not fit the known columns.
    """
    check_name("table", name)
    table = static_rows(name, rows)
    former = known.get(name)
    if table is None:
        if former is None:
            remedy = "give it one row, or an Arrow table of no rows"
            raise InputError(f"table {name!r} has no columns", place=f"table {name}", remedy=remedy)
        table = former.schema.columns.empty_table()
    schema = TableSchema(name, table.schema)
    if former is not None and former.schema.columns.names == schema.columns.names:
        schema = former.schema
    batch = _batch(name, table, schema)
    digest = _digest(batch)
    if former is not None and digest in (former.digest, declared):
        return SetTable(name, schema.columns, former.chunk, digest)
    chunk = store_chunk(store, f"{TABLES}/{name}/{max(step, 0):08d}-{digest}", batch)
    return SetTable(name, schema.columns, chunk, digest)


def _batch(name: str, table: pa.Table, schema: TableSchema) -> pa.RecordBatch:
    try:
        whole = without_runs(table).cast(schema.columns)
    except (pa.ArrowException, ValueError) as error:
        raise InputError(
            f"the rows of table {name!r} do not fit its columns:  {error}",
            place=f"table {name}",
            remedy=f"give columns {', '.join(f'{f.name} {f.type}' for f in schema.columns)}",
        ) from error
    return one_batch(whole, f"table {name!r}")


def _digest(batch: pa.RecordBatch) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return hashlib.sha256(sink.getvalue()).hexdigest()[:16]
