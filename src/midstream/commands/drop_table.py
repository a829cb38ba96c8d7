"""Have a running job keep a static table no longer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from typing_extensions import override

from midstream.commands.base import StepCommand
from midstream.commands.set_table import readers
from midstream.model.command import Prompt
from midstream.model.errors import QueryError
from midstream.model.events import Event, TableDropped
from midstream.units.draft import Draft


@dataclass(frozen=True)
class DropTable(StepCommand):
    """Forget a static table that no query reads any more. One that is given its rows again begins with version 1."""

    option_of = ("drop", "--table")
    examples = ("ckpt rates",)

    table: Annotated[str, Prompt("A static table that no query reads.", "NAME")]

    @override
    def apply(self, draft: Draft) -> None:
        manifest, place = draft.manifest, f"table {self.table}"
        if not isinstance(self.table, str) or self.table not in manifest.tables:
            known = ", ".join(manifest.tables)
            remedy = f"use one of: {known}" if known else "no drop is needed: the job has no table"
            raise QueryError(f"there is no table {self.table!r}", place=place, remedy=remedy)
        if found := readers(manifest, self.table):
            raise QueryError(
                f"table {self.table!r} cannot be dropped while queries read it: {', '.join(found)}",
                place=place,
                remedy=f"drop {'it' if len(found) == 1 else 'them'} first",
            )
        tables = {name: one for name, one in manifest.tables.items() if name != self.table}
        draft.manifest = replace(manifest, tables=tables)
        draft.events.append(TableDropped(manifest.step, self.table))

    @override
    def is_done_by(self, event: Event) -> bool:
        return isinstance(event, TableDropped) and event.table == self.table
