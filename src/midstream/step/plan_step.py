"""Before a step: commands are taken or refused, and what each lane group runs is settled. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from midstream.migration.base import MigrationRequest
from midstream.migration.discovery import discovered, strategy
from midstream.model.codec import encode
from midstream.model.commands import AddQuery, ChangeQuery, Command, DropQuery, Migrate, Rescale, Reshare
from midstream.model.errors import MidstreamError, QueryError, StrategyError, fault_located
from midstream.model.events import (
    CommandRefused,
    Event,
    LanesRescaled,
    MigrationBegun,
    QueryAdded,
    QueryChanged,
    QueryDropped,
    SharingChanged,
)
from midstream.model.manifest import Manifest, QueryEntry
from midstream.plan.notation import default_plan, parse_plan
from midstream.plan.texts import parsed
from midstream.plan.tree import Plan
from midstream.runtime.lane_key import SINGLE, SLOTS
from midstream.sharing.chains import check_parts, check_whole, members, move, reworded, united
from midstream.sharing.discovery import scheme
from midstream.sharing.membership import change, enrol, release, settled, unshared
from midstream.sharing.recut import recut
from midstream.sharing.shape import can_share
from midstream.step.choose import AUTO, foreseen, resolve, tasks_of
from midstream.step.group import group_for
from midstream.step.operators import check_hand_over, check_named, check_operator
from midstream.step.program import Program, compile_program


@dataclass(frozen=True)
class StepPlan:
    """A step about to run.

    `manifest` already has the commands' queries and lanes, and the step's own number; `lanes_before` is the number of
    lanes that `manifest.lane_states` still has. `migrations` begin with this step.
    """

    manifest: Manifest
    lanes_before: int
    migrations: Mapping[str, tuple[Migrate, ...]]
    events: tuple[Event, ...]
    changed: bool = False

    def program(self, group: str) -> Program:
        """What the lanes of a group run."""
        return replace(compile_program(self.manifest, group, self.migrations), changed=self.changed)

    def groups(self) -> tuple[str, ...]:
        """The lane groups in use, sorted."""
        return tuple(sorted({entry.group for entry in self.manifest.queries.values()}))

    def lanes(self, group: str) -> int:
        """How many lanes a group has."""
        return lanes_of(group, self.manifest.lanes)

    @property
    def needs_watermarks(self) -> bool:
        """Whether a query asks about instants, or has an operator to tell: lanes must know the watermarks after."""
        queries = [parsed(self.manifest, e.sql) for e in self.manifest.queries.values() if not e.shares]
        operated = any(e.operator is not None for e in self.manifest.queries.values())
        return operated or any(q.aggregate is not None or q.difference is not None for q in queries)


def lanes_of(group: str, lanes: int) -> int:
    """How many lanes a group has when the job has `lanes`."""
    return 1 if group == SINGLE else lanes


def plan_step(manifest: Manifest, commands: Sequence[Command], last_command: int | None = None) -> StepPlan:
    """Take the commands in order; one that cannot be done becomes a `CommandRefused` event and changes nothing."""
    step = manifest.step + 1
    current = replace(united(manifest), step=step, last_command=last_command or manifest.last_command, pending=())
    migrations: dict[str, tuple[Migrate, ...]] = {}
    events: list[Event] = []
    for command in commands:
        try:
            with fault_located(partial("command {}".format, command.kind)):
                current = take(current, command, migrations, events)
        except MidstreamError as error:
            events.append(CommandRefused(step, encode(command), str(error)))
    if any(isinstance(command, ChangeQuery) for command in commands):
        current = settled(current, [w for entry in current.queries.values() for w in entry.wants.values()])
    asked = any(isinstance(command, AddQuery | ChangeQuery | DropQuery | Reshare) for command in commands)
    changed = asked or current.chains.keys() != manifest.chains.keys()
    current = recut(current, events, changed=changed)
    return StepPlan(current, manifest.lanes, migrations, tuple(events), changed)


def take(
    manifest: Manifest, command: Command, migrations: dict[str, tuple[Migrate, ...]], events: list[Event]
) -> Manifest:
    """The manifest with one command taken; raises the `MidstreamError` that refuses it."""
    match command:
        case AddQuery(name, sql, plan, sink, operator, history):
            if name in manifest.queries:
                raise QueryError(f"there is a query {name!r} already", place=name, remedy="drop it or use another name")
            entry = new_entry(manifest, sql, plan, sink, operator)
            if scheme(manifest.sharing).shares and operator is None and can_share(parsed(manifest, sql)):
                manifest = enrol(manifest, name, entry, history=history)
                if manifest.queries[name].shares:
                    check_parts(manifest, name)
            else:
                yields = name in manifest.chains
                manifest = unshared(manifest, name, entry)
                if yields and name in migrations:
                    new = next(k for k, chain in manifest.chains.items() if chain.formerly == name)
                    migrations[new] = migrations.pop(name)
            entry = manifest.queries[name]
            events.append(QueryAdded(manifest.step, name, entry.plan, entry.sees, entry.exact_from))
            return manifest
        case ChangeQuery(name, sql):
            entry_of(manifest, name)
            manifest = change(manifest, name, sql)
            check_parts(manifest, name)
            entry = manifest.queries[name]
            events.append(QueryChanged(manifest.step, name, sql, entry.sees, entry.exact_from))
            return manifest
        case DropQuery(name):
            entry = entry_of(manifest, name)
            unit = entry.unit(name)
            heirs = [mate for mate in members(manifest, unit) if mate != name]
            manifest = release(manifest, name)
            if heirs:
                heir = manifest.queries[heirs[0]]
                if unit in migrations:
                    migrations[heir.chain] = migrations.pop(unit)
                inherited = reworded(manifest, entry.migrations, entry.sql, heir.sql)
                manifest = manifest.with_query(heirs[0], replace(heir, migrations={**heir.migrations, **inherited}))
            else:
                migrations.pop(unit, None)
                events[:] = [e for e in events if not (isinstance(e, MigrationBegun) and e.query == name)]
            events.append(QueryDropped(manifest.step, name))
            return manifest
        case Migrate(name):
            entry, detail = entry_of(manifest, name), dict[str, Any]()
            if command.operator is not None and command.operator == entry.operator:
                command = replace(command, operator=None)
            command = replace(command, plan=command.plan or entry.plan)
            if command.operator is not None:
                detail = {"operator": command.operator}
                check_named(command)
            if command.strategy == AUTO:
                command, predicted, considered = resolve(manifest, command)
                detail = {"predicted": predicted, "considered": considered}
            plan_ = check_migration(manifest, command)
            check_whole(manifest, name)
            detail = {**foreseen(manifest, command), **detail}
            events.append(_begun(manifest, command, plan_, detail))
            unit, notation = name, plan_.notation()
            if entry.shares:
                manifest, unit = move(manifest, name, notation, together=command.together)
                notation = manifest.chains[unit].plan
            else:
                moved = replace(entry, plan=notation, operator=command.operator or entry.operator)
                manifest = manifest.with_query(name, moved)
            migrations[unit] = (*migrations.get(unit, ()), replace(command, plan=notation))
            return manifest
        case Reshare(sharing):
            scheme(sharing, "reshare")
            if sharing == manifest.sharing:
                return manifest
            before, manifest = manifest.sharing, replace(manifest, sharing=sharing, reshared=manifest.step)
            for name, entry in manifest.queries.items():
                if entry.shares:
                    check_parts(manifest, name)
            events.append(SharingChanged(manifest.step, before, sharing))
            return manifest
        case Rescale(lanes):
            check_lanes(lanes)
            if lanes != manifest.lanes:
                events.append(LanesRescaled(manifest.step, manifest.lanes, lanes))
            return replace(manifest, lanes=lanes)
    raise QueryError(f"unknown command {command.kind!r}", place="command log", remedy="see `midstream --help`")


def _begun(manifest: Manifest, command: Migrate, new: Plan, detail: dict[str, Any]) -> MigrationBegun:
    entry = entry_of(manifest, command.query)
    query = parsed(manifest, entry.sql)
    old = parse_plan(entry.plan, query)
    tasks = tuple((t.piece(old).notation(), t.piece(new).notation()) for t in tasks_of(query, old, new))
    return MigrationBegun(manifest.step, command.query, command.strategy, old.notation(), new.notation(), tasks, detail)


def new_entry(
    manifest: Manifest,
    sql: str,
    plan: str | None,
    sink: Mapping[str, object] | None,
    operator: Mapping[str, object] | None = None,
) -> QueryEntry:
    """The entry of a query that begins with the manifest's step; checks its text and plan."""
    query = parsed(manifest, sql)
    chosen = parse_plan(plan, query) if plan else default_plan(query)
    if operator is None:
        group, spread = group_for(manifest, query)
        return QueryEntry(sql, chosen.notation(), manifest.step, group, sink, spread=spread)
    check_operator(query, operator, "add_query")
    return QueryEntry(sql, chosen.notation(), manifest.step, SINGLE, sink, operator=operator)


def entry_of(manifest: Manifest, name: str) -> QueryEntry:
    """The entry of a running query."""
    if name not in manifest.queries:
        known = ", ".join(sorted(manifest.queries)) or "none is running"
        raise QueryError(f"there is no query {name!r}", place=name, remedy=f"use one of: {known}")
    return manifest.queries[name]


def check_migration(manifest: Manifest, command: Migrate) -> Plan:
    """The plan that a migration leads to; raises where plan, strategy or options do not fit."""
    entry = entry_of(manifest, command.query)
    given: dict[str, object] = {"plan": command.plan, "strategy": command.strategy}
    for name, value in given.items():
        if not isinstance(value, str):
            place = f"query {command.query}"
            raise StrategyError(f"{name} is text, not {value!r}", place=place, remedy="write it as in the README")
    query = parsed(manifest, entry.sql)
    plan, chosen = parse_plan(command.plan, query), strategy(command.strategy)
    known = {option.name for option in chosen.options}
    unknown = sorted(command.options.keys() - known)
    if unknown:
        raise StrategyError(
            f"{chosen.name} has no option {unknown[0]!r}",
            place=f"query {command.query}",
            remedy=f"options: {', '.join(sorted(known)) or 'it has none'}",
        )
    stateful = len(query.sources) > 1 or query.aggregate is not None
    wrong = chosen.wrong(command.options)
    if wrong:
        raise StrategyError(f"{chosen.name}: {wrong}", place=f"query {command.query}", remedy="correct the option")
    plain = query.aggregate is None and query.difference is None and entry.operator is None
    move = MigrationRequest(command.query, entry.plan, plan, stateful, command.options, plain)
    reason = chosen.refusal(move)
    if reason:
        raise StrategyError(
            f"{chosen.name} cannot carry query {command.query!r}: {reason}",
            place=f"query {command.query}",
            remedy=f"use one that can: {', '.join(able(move))}",
        )
    if command.operator is not None:
        check_hand_over(command.query, query, entry.operator, command.operator, chosen)
    elif plan.notation() == entry.plan:
        raise StrategyError(
            f"query {command.query!r} runs by {entry.plan} already, or is on its way there",
            place=f"query {command.query}",
            remedy="name another plan",
        )
    return plan


def able(move: MigrationRequest) -> list[str]:
    """The strategies that can carry a box."""
    bare = replace(move, options={})
    return [name for name, strategy in discovered().items() if strategy.refusal(bare) is None]


def check_lanes(lanes: int) -> None:
    """Raise unless a job can have so many lanes."""
    if not isinstance(lanes, int) or not 1 <= lanes <= SLOTS:
        raise QueryError(f"{lanes} lanes are not possible", place="lanes", remedy=f"use 1 to {SLOTS}")
