"""End a query."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from typing_extensions import override

from midstream.commands.base import StepCommand
from midstream.commands.migrate import inherit
from midstream.model.command import QueryName
from midstream.model.events import Event, MigrationBegun, QueryDropped
from midstream.proposals.proposals import withdraw
from midstream.ring.ring_members import regrouped
from midstream.sharing.chains import members
from midstream.sharing.membership import release
from midstream.units.answers import refuse_if_read, unread_part, without_unread
from midstream.units.draft import Draft


@dataclass(frozen=True)
class DropQuery(StepCommand):
    """Drop a query of a running job, with the state that only it reads.

    Migrations of what it shares go on, and are then those of the first query that still shares it.
    """

    query: Annotated[str, QueryName]

    verb = "drop"
    examples = ("ckpt large",)

    @override
    def apply(self, draft: Draft) -> None:
        known = isinstance(self.query, str) and self.query in draft.manifest.refused
        if known and self.query not in draft.manifest.queries:
            draft.manifest = draft.manifest.without_refused(self.query)
            draft.events.append(QueryDropped(draft.manifest.step, self.query))
            return
        name, entry = self.query, draft.entry(self.query)
        unit = entry.unit(name)
        refuse_if_read(draft.manifest, name, "dropped")
        heirs = [mate for mate in members(draft.manifest, unit) if mate != name]
        withdraw(draft, name, f"query {name} was dropped")
        draft.manifest = release(draft.manifest, name)
        if entry.nodes is not None:
            draft.manifest = regrouped(draft.manifest, entry.group)
        if heirs:
            inherit(draft, name, entry, heirs[0])
        else:
            draft.migrations.pop(unit, None)
            draft.events = [e for e in draft.events if not (isinstance(e, MigrationBegun) and e.query == name)]
        kept = {query: one for query, one in draft.manifest.optimizations.items() if query != name}
        draft.manifest = replace(draft.manifest, optimizations=kept)
        draft.manifest = without_unread(draft.manifest)
        draft.changed = True
        draft.events.append(QueryDropped(draft.manifest.step, name))
        if (unread := unread_part(draft.manifest)) is not None:
            DropQuery(unread).apply(draft)

    @override
    def is_done_by(self, event: Event) -> bool:
        return isinstance(event, QueryDropped) and event.query == self.query
