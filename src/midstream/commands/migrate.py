"""Carry a query to another plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Self

from typing_extensions import override

from midstream.commands.base import StepCommand
from midstream.logical.query import Query, query_of
from midstream.migration.strategy_contract import MigrationRequest, discovered, strategy
from midstream.model.allowed import allow_operators
from midstream.model.command import OperatorOptions, OperatorPath, Prompt, QueryName, operator_value
from midstream.model.errors import StrategyError
from midstream.model.events import Event, MigrationBegun, MigrationEnded
from midstream.model.manifest import Manifest, QueryEntry
from midstream.optimizer.statistics import Statistics
from midstream.plan.notation import parse_plan
from midstream.plan.tree import Plan
from midstream.ring.declare import check_orders
from midstream.ring.ring_members import reordered
from midstream.sharing.chains import check_whole, members, move, reworded
from midstream.sharing.shape import canonical_plan, own_plan
from midstream.units.choose import AUTO, foreseen, live_statistics, resolve, tasks_of
from midstream.units.draft import Draft, MigrationStart
from midstream.units.user_operators import check_hand_over, check_named


def choices_of_strategy() -> tuple[str, ...]:
    """List the strategies of a migration, for forms."""
    return (AUTO, *discovered())


@dataclass(frozen=True)
class Migrate(StepCommand):
    """Move a running query to another plan, to another operator of yours, or both; its answers go on.

    A query that shares its plan with others leaves them, unless all go together. The plan and the strategy are
    checked against the query before the command is sent.
    """

    examples = (
        "ckpt pairs '((A B) C)' --wait 60",
        "ckpt pairs '(A (B C))' --strategy jisc",
    )

    query: Annotated[str, QueryName]
    plan: Annotated[
        str, Prompt("The new plan, such as '((A B) C)'; optional with an operator.", "PLAN", argument=True)
    ] = ""
    strategy: Annotated[
        str,
        Prompt(
            "How kept rows get there; auto: what suits best. See docs/strategies.md.",
            "S",
            choices=choices_of_strategy,
        ),
    ] = AUTO
    options: Annotated[dict[str, Any], Prompt("An option of the strategy; may be repeated.")] = field(
        default_factory=dict
    )
    operator: Annotated[str | None, OperatorPath] = None
    operator_options: Annotated[Mapping[str, Any], OperatorOptions] = field(default_factory=dict)
    together: Annotated[bool, Prompt("Move all queries that share the plan.")] = False

    @property
    def above(self) -> dict[str, Any] | None:
        """The user's operator to go to, as the manifest keeps it; None where it stays as it is."""
        return operator_value(self.operator, self.operator_options)

    @override
    def allowed(self) -> Self:
        if self.above is not None:
            allow_operators(str(self.operator))
        return self

    @override
    def apply(self, draft: Draft) -> None:
        nodes = draft.entry(self.query).nodes
        self.begin(draft, live_statistics(draft.manifest, self.query, draft.chunks) if nodes is None else None)

    def begin(self, draft: Draft, known: Statistics | None) -> None:
        """Begin the migration by live figures of the query; None: it is spread over nodes."""
        entry = draft.entry(self.query)
        operator = None if self.above == entry.operator else self.above
        start = MigrationStart(self.query, self.plan or entry.plan, self.strategy, self.options, operator)
        detail = dict[str, Any]()
        if operator is not None:
            detail = {"operator": operator}
            check_named(start)
        if start.strategy == AUTO and entry.nodes is not None:
            # There is nothing to carry: base rows are all that nodes keep.
            start = replace(start, strategy="moving_state")
        if start.strategy == AUTO and known is not None:
            start, predicted, considered = resolve(draft.manifest, start, known)
            detail = {"predicted": predicted, "considered": considered}
        plan = check_migration(draft.manifest, entry, start)
        check_whole(draft.manifest, self.query)
        # Nodes keep base rows only: nothing is carried, and nothing to be foreseen.
        detail = {**({} if known is None else foreseen(draft.manifest, start, known)), **detail}
        begun = _begun(draft.manifest, entry, start, plan, detail)
        mates = [mate for mate in members(draft.manifest, entry.unit(self.query)) if mate != self.query]
        if entry.shares and mates and not self.together:
            inherit(draft, self.query, entry, mates[0])
        draft.events.append(begun)
        unit, notation = self.query, plan.notation()
        if entry.shares:
            draft.manifest, unit = move(draft.manifest, self.query, notation, together=self.together)
            notation = draft.manifest.chains[unit].plan
        else:
            moved = replace(entry, plan=notation, operator=operator or entry.operator)
            draft.manifest = reordered(draft.manifest.with_query(self.query, moved), self.query)
        draft.migrations[unit] = (*draft.migrations.get(unit, ()), replace(start, plan=notation))

    @override
    def is_done_by(self, event: Event) -> bool:
        return isinstance(event, MigrationEnded) and (event.query, event.plan) == (self.query, self.plan)

    @override
    def logged(self, after: Manifest) -> Self:
        return replace(self, plan=after.queries[self.query].plan)


def inherit(draft: Draft, name: str, entry: QueryEntry, successor: str) -> None:
    """Pass the migrations of a plan on to `successor`, because the query that began them no longer shares it.

    `entry` is that of the query. Also what begins in this step goes over, and is reported by the successor's aliases.
    """
    other = draft.manifest.queries[successor]
    inherited = reworded(entry.migrations, query_of(entry), query_of(other))
    other = replace(other, migrations={**other.migrations, **inherited})
    draft.manifest = draft.manifest.with_query(successor, other)
    if entry.chain in draft.migrations:
        starts = draft.migrations.pop(entry.chain)  # The chain may have another name now.
        draft.migrations[other.chain] = tuple(replace(s, query=successor) if s.query == name else s for s in starts)
    draft.events = [
        _inherited(draft.manifest, event, query_of(entry), successor)
        if isinstance(event, MigrationBegun) and event.query == name
        else event
        for event in draft.events
    ]


def _inherited(manifest: Manifest, event: MigrationBegun, before: Query, successor: str) -> MigrationBegun:
    query = query_of(manifest.queries[successor])
    old, new = (parse_plan(own_plan(query, canonical_plan(before, plan)), query) for plan in (event.old, event.new))
    return replace(event, query=successor, old=old.notation(), new=new.notation(), tasks=_pieces(query, old, new))


def check_migration(manifest: Manifest, entry: QueryEntry, start: MigrationStart) -> Plan:
    """Parse the plan that a migration of a query leads to; raises where plan, strategy or options do not fit."""
    place = f"query {start.query}"
    for name, value in (("plan", start.plan), ("strategy", start.strategy)):
        if not isinstance(value, str):
            raise StrategyError(
                f"{name} must be a string, not {value!r}", place=place, remedy=f"give the {name} as a string"
            )
    query = query_of(entry)
    plan, chosen = parse_plan(start.plan, query), strategy(start.strategy)
    if entry.nodes is not None:
        check_orders(query, entry.nodes, plan, place)
    known = {option.name for option in chosen.options}
    unknown = sorted(start.options.keys() - known)
    if unknown:
        raise StrategyError(
            f"{chosen.name} has no option {unknown[0]!r}",
            place=place,
            remedy=f"use one of: {', '.join(sorted(known))}" if known else "leave the option out",
        )
    wrong = chosen.wrong(start.options)
    if wrong:
        raise StrategyError(f"{chosen.name}: {wrong}", place=place, remedy="correct the option")
    plain = query.plain and entry.operator is None
    timed = all(one.window is None or one.window.kind == "range" for one in query.sources)
    request = MigrationRequest(start.query, entry.plan, plan, query.keeps_rows, start.options, plain, timed)
    reason = chosen.refusal(request)
    if reason:
        raise StrategyError(
            f"{chosen.name} cannot migrate query {start.query!r}: {reason}",
            place=place,
            remedy=f"use a strategy that can: {', '.join(_able(request))}",
        )
    if start.operator is not None:
        check_hand_over(start.query, query, entry.operator, start.operator, chosen)
    elif plan.notation() == entry.plan:
        raise StrategyError(
            f"query {start.query!r} already runs the plan {entry.plan}, or is changing to it",
            place=place,
            remedy="name another plan",
        )
    return plan


def _able(request: MigrationRequest) -> list[str]:
    # With their options at their defaults.
    bare = replace(request, options={})
    return [name for name, one in discovered().items() if one.refusal(bare) is None]


def _begun(
    manifest: Manifest, entry: QueryEntry, start: MigrationStart, new: Plan, detail: dict[str, Any]
) -> MigrationBegun:
    query = query_of(entry)
    old = parse_plan(entry.plan, query)
    tasks = _pieces(query, old, new)
    return MigrationBegun(manifest.step, start.query, start.strategy, old.notation(), new.notation(), tasks, detail)


def _pieces(query: Query, old: Plan, new: Plan) -> tuple[tuple[str, str], ...]:
    return tuple((t.piece(old).notation(), t.piece(new).notation()) for t in tasks_of(query, old, new))
