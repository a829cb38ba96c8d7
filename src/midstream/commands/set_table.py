"""Give a static table its rows, the first time or again."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
from typing_extensions import override

from midstream.commands.add_stream import names_of, refuse_taken_name
from midstream.commands.base import StepCommand
from midstream.logical.query import query_of
from midstream.model.errors import QueryError
from midstream.model.events import Event, TableSet
from midstream.model.manifest import ChunkRef, Manifest, StaticTable
from midstream.model.schema import TableSchema
from midstream.units.draft import Draft


@dataclass(frozen=True)
class SetTable(StepCommand):
    """Have rows that come in from this step on look rows up in these: the table's next version.

    The rows are in a chunk already; `digest` stands for them and the columns. The rows that the table has are no new
    version.
    """

    table: str
    columns: pa.Schema
    chunk: ChunkRef
    digest: str

    @override
    def apply(self, draft: Draft) -> None:
        manifest, schema = draft.manifest, TableSchema(self.table, self.columns)
        known = manifest.tables.get(self.table)
        if known is None:
            refuse_taken_name("table", self.table, names_of(manifest))
        elif known.digest == self.digest:
            return
        elif known.schema.columns != schema.columns and (found := readers(manifest, self.table)):
            raise QueryError(
                f"table {self.table!r} has new columns, but queries read the old columns: {', '.join(found)}",
                place=f"table {self.table}",
                remedy=f"keep the columns {known.schema.columns.names}, or drop the queries first",
            )
        version = 1 if known is None else known.version + 1
        table = StaticTable(schema, self.chunk, self.digest, version, manifest.step)
        draft.manifest = replace(manifest, tables={**manifest.tables, self.table: table})
        draft.events.append(TableSet(manifest.step, self.table, version, self.chunk.rows))

    @override
    @property
    def chunks(self) -> tuple[str, ...]:
        return (self.chunk.name,)

    @override
    def is_done_by(self, event: Event) -> bool:
        return isinstance(event, TableSet) and event.table == self.table

    @override
    def is_met(self, manifest: Manifest) -> bool:
        known = manifest.tables.get(self.table)
        return known is not None and known.digest == self.digest


def readers(manifest: Manifest, table: str) -> list[str]:
    """List the queries whose texts name a table."""
    entries = manifest.queries.items()
    return [name for name, entry in entries if not entry.part and table in query_of(entry).tables]
