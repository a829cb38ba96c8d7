"""Begin a query."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Annotated, Any, Self

from typing_extensions import override

from midstream.commands.base import StepCommand
from midstream.logical.query import Query, query_of
from midstream.model.allowed import allow_operators
from midstream.model.codec import decode
from midstream.model.command import Command, Prompt, named_options
from midstream.model.errors import QueryError, fault_located
from midstream.model.events import CrossJoinBegun, Event, QueryAdded
from midstream.model.manifest import Manifest, QueryEntry, RefusedQuery
from midstream.model.schema import check_name
from midstream.plan.key_classes import tied_sources
from midstream.plan.notation import default_plan, parse_plan
from midstream.plan.signature import canonical
from midstream.ring.declare import spread_entry
from midstream.ring.ring_members import entered
from midstream.runtime.lane_key import SINGLE, Spread, fits, group_at, group_name, is_single, lane_key, spread_text
from midstream.sharing.chains import check_parts
from midstream.sharing.membership import enrol, unshared
from midstream.sharing.schemes.scheme_contract import scheme
from midstream.sharing.shape import can_share
from midstream.sql.job_specs import QuerySpec
from midstream.sql.parse import bind_to_run, derived_parts
from midstream.sql.parts import Statement, not_too_deep
from midstream.units.answers import level_of, with_answers, with_answers_of
from midstream.units.draft import Draft
from midstream.units.user_operators import check_operator


@dataclass(frozen=True)
class AddQuery(QuerySpec, StepCommand):
    """Add a query over the streams of a running job. It joins rows that arrive from its first step on.

    With `history` these rows also join earlier rows that running queries of the same join have kept. The event
    `QueryAdded` says which these are, and from when the answers are exact. With a `spread` it keeps base rows only, and
    shares the nodes of queries that are like it and spread alike.
    """

    part: Annotated[bool, Prompt(shown=False)] = False  # goes with the last query that reads its answers

    verb = "add"
    examples = (
        "ckpt large 'SELECT A.id FROM A, B WHERE A.id = B.id WINDOW 1 HOUR'",
        "ckpt large - --sink path=results/large --sink format=json",
    )

    @override
    def allowed(self) -> Self:
        if self.above is not None:
            allow_operators(str(self.operator))
        return self

    @classmethod
    def of(cls, spec: QuerySpec) -> AddQuery:
        """Return the command that begins a query as it is declared."""
        return cls(spec.query, **spec.arguments()).of_tree(spec)

    def without_operator(self) -> AddQuery:
        """Return the command for the query alone."""
        return self.like(operator=None, operator_options={})

    @override
    def apply(self, draft: Draft) -> None:
        check_name("query", self.query)
        statement = self.statement
        with not_too_deep(self.sql):
            self._begin(draft, statement)

    def _begin(self, draft: Draft, statement: Statement) -> None:
        name, manifest = self.query, draft.manifest
        if name in manifest.queries:
            raise QueryError(
                f"there is already a query {name!r}", place=name, remedy="drop that query, or use another name"
            )
        for part, below in statement.parts.queries.items():
            if part not in draft.manifest.queries:
                with fault_located(partial("subquery {}".format, part)):
                    AddQuery(part, below.sql, history=self.history, part=True)._begin(draft, below)
        draft.manifest = with_answers(draft.manifest, statement, name)
        for derived in derived_parts(draft.manifest, statement):
            if derived.part not in draft.manifest.queries:
                below = derived.statement
                AddQuery(derived.part, below.sql, history=self.history, part=True)._begin(draft, below)
            derived.check(query_of(draft.manifest.queries[derived.part]))
            draft.manifest = with_answers_of(draft.manifest, [derived.part], name)
        manifest = draft.manifest
        entry = self._entry(manifest, statement)
        query, alone = query_of(entry), self.operator is not None or entry.nodes is not None
        if scheme(manifest.sharing).shares and not alone and can_share(query):
            draft.manifest = enrol(manifest, name, entry, history=self.history)
            if draft.manifest.queries[name].shares:
                check_parts(draft.manifest, name)
        else:
            draft.manifest = unshared(manifest, name, entry)
            if name in manifest.chains and name in draft.migrations:
                # The chain that bore the query's name has given it up, its migrations go on under its new one.
                chain = next(k for k, other in draft.manifest.chains.items() if other.former_name == name)
                draft.migrations[chain] = draft.migrations.pop(name)
        if entry.nodes is not None:
            draft.manifest = entered(draft.manifest, name, planned=self.plan is not None)
        draft.changed = True
        draft.manifest = draft.manifest.without_refused(name)
        entry = draft.manifest.queries[name]
        draft.events.append(QueryAdded(manifest.step, name, entry.plan, entry.sees, entry.exact_from, entry.from_step))
        if len(groups := tied_sources(query)) > 1:
            draft.events.append(CrossJoinBegun(manifest.step, name, groups))

    def _entry(self, manifest: Manifest, statement: Statement) -> QueryEntry:
        query = bind_to_run(manifest, statement)
        entry = QueryEntry(
            query,
            self.plan or "",
            manifest.step,
            sink=self.sink,
            operator=self.above,
            rejects=query.rejects,
            part=self.part,
        )
        if self.spread is not None or self.nodes is not None or self.spread_options:
            options = named_options(self.spread_options, "spread_options")
            return spread_entry(manifest, self.query, entry, self.spread, self.nodes, options)
        plan = (parse_plan(self.plan, query) if self.plan else default_plan(query)).notation()
        if entry.operator is None:
            group, spread = group_for(manifest, query)
            return replace(entry, plan=plan, group=group, spread=spread)
        check_operator(query, entry.operator, "add_query")
        group = group_at(SINGLE, level_of(manifest, query))
        return replace(entry, plan=plan, group=group)

    @override
    def is_done_by(self, event: Event) -> bool:
        return isinstance(event, QueryAdded) and event.query == self.query


def with_refused(manifest: Manifest, command: Command | Mapping[str, Any], step: int, reason: str) -> Manifest:
    """Return the manifest with a query noted that cannot begin with a step. It is unchanged where the command begins
    none.

    A command may be given as its event has it.
    """
    if isinstance(command, Mapping):
        command = decode(Command, command)
    if not isinstance(command, AddQuery) or command.query in manifest.queries:
        return manifest
    refused = RefusedQuery(command.sql, step, reason)
    return replace(manifest, refused={**manifest.refused, command.query: refused})


def group_for(manifest: Manifest, query: Query) -> tuple[str, Spread]:
    """Choose the lane group of a query, and what spreads its rows.

    A group whose rows are spread as the query needs, so that it can share them; else one of its own.
    """
    known: dict[str, int] = {}
    key, level = lane_key(canonical(query)[0]), level_of(manifest, query, known)
    own, mine = group_at(group_name(key), level), spread_text(key)
    if key is None:
        return own, mine
    theirs: dict[str, set[Spread]] = {}
    flat = not level and len(manifest.pushed_streams) == len(manifest.streams)
    for entry in manifest.queries.values():
        if flat or level == level_of(manifest, query_of(entry), known):
            theirs.setdefault(entry.group, set()).add(entry.spread)
    names = sorted((name for name in theirs if not is_single(name)), key=lambda name: (name != own, name))
    fitting = (name for name in names if _fits_all(mine, theirs[name]))
    return next(fitting, None) or next(name for name in _names(own) if name not in theirs), mine


def _names(own: str) -> Iterator[str]:
    yield own
    yield from (f"{own}-{n}" for n in count(1))


def _fits_all(mine: Spread, theirs: Collection[Spread]) -> bool:
    # It agrees with each key on what both have, and with one at least on something.
    spread_over = {stream: text for spread in theirs for stream, text in spread}
    return fits(mine, tuple(sorted(spread_over.items())))
