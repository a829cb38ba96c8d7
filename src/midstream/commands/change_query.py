"""Give a running query another text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from typing_extensions import override

from midstream.commands.base import StepCommand
from midstream.logical.query import query_of
from midstream.model.command import Prompt, QueryName
from midstream.model.errors import QueryError
from midstream.model.events import Event, QueryChanged
from midstream.proposals.proposals import withdraw
from midstream.proposals.settings import reworded
from midstream.sharing.chains import check_parts
from midstream.sharing.membership import change
from midstream.sql.parse import bind_to_run, derived_parts
from midstream.sql.parts import QueryText, not_too_deep
from midstream.units.draft import Draft


@dataclass(frozen=True)
class ChangeQuery(QueryText, StepCommand):
    """Give a running query another window or filter, or another select list with the same columns.

    It keeps its plan, its state and where its results go. With a wider window the answers are exact once kept rows
    reach back far enough; the event `QueryChanged` says from when.
    """

    query: Annotated[str, QueryName]
    sql: Annotated[str, Prompt("The query; - reads it from standard input.", "SQL", long=True)]

    verb = "change"
    examples = ("ckpt large 'SELECT A.id FROM A, B WHERE A.id = B.id WINDOW 2 HOURS' --wait 60",)

    @override
    def apply(self, draft: Draft) -> None:
        with not_too_deep(self.sql):
            self._change(draft)

    def _change(self, draft: Draft) -> None:
        before = draft.entry(self.query)
        statement = self.statement
        parts = [*statement.parts.queries, *(part.part for part in derived_parts(draft.manifest, statement))]
        known = draft.manifest.queries.keys() | draft.manifest.streams.keys()
        if not known.issuperset([*parts, *statement.parts.unions]):
            raise QueryError(
                f"the new text of query {self.query!r} cannot change a subquery, a nested join or a static table",
                place=f"query {self.query}",
                remedy="drop the query and add it again",
            )
        query = bind_to_run(draft.manifest, statement)
        if not before.shares and query.digest() == before.query.digest():
            # Only the words differ, so everything goes on, also where a text of another meaning would be refused.
            draft.manifest = draft.manifest.with_query(self.query, replace(before, query=query))
        else:
            withdraw(draft, self.query, f"query {self.query} was changed")
            draft.manifest = reworded(change(draft.manifest, self.query, query), self.query, query_of(before))
            check_parts(draft.manifest, self.query)
            draft.changed = draft.reworded = True
        entry = draft.entry(self.query)
        step, past = draft.manifest.step, (entry.sees, entry.exact_from, entry.from_step)
        draft.events.append(QueryChanged(step, self.query, self.sql, *past))

    @override
    def is_done_by(self, event: Event) -> bool:
        return isinstance(event, QueryChanged) and (event.query, event.sql) == (self.query, self.sql)
