"""Queries made ready to run: a frozen value that every lane of a group shares."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from midstream.logical.query import Query, query_of
from midstream.model.codec import decode
from midstream.model.frozen import kept_with, make_room
from midstream.model.manifest import Manifest, QueryEntry
from midstream.operators.binding import Binding
from midstream.operators.result_compiler import Asked, compile_result
from midstream.operators.tumbling import has_partial_sums
from midstream.operators.user import UserResultOperator
from midstream.operators.user_operator import OperatorSpec
from midstream.optimizer.observe import Observed
from midstream.plan.signature import canonical
from midstream.runtime.distribution import Stage
from midstream.runtime.lane_key import is_ordered, is_single
from midstream.runtime.result_operator import ResultOperator
from midstream.sharing.shape import canonical_plan
from midstream.units.chain_unit import chain_units, plan_in_step
from midstream.units.draft import MigrationStart
from midstream.units.query_unit import QueryUnit
from midstream.units.ring_unit import ring_unit
from midstream.units.unit import Unit


@dataclass(frozen=True)
class Program:
    """What a group of lanes runs in one step: its queries, in order of name, and the migrations that begin with it.

    `changed`: queries were added, dropped or changed with it, so that new states may be needed.
    """

    units: tuple[Unit, ...]
    migrations: Mapping[str, tuple[MigrationStart, ...]]
    changed: bool = False

    @cached_property
    def streams(self) -> tuple[str, ...]:
        """The streams that its units read, each once."""
        return tuple(dict.fromkeys(stream for unit in self.units for stream in unit.streams))

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of a step, in order. There is one, because the queries of a group agree on a lane key or run in
        one lane."""
        spread = [unit for unit in self.units if not is_single(unit.group)]
        keys = [key for unit in spread if (key := unit.lane_key) is not None]
        return (Stage(0, {stream: expression for key in keys for stream, expression in key.items()} or None),)


def unit_of(manifest: Manifest, name: str) -> Unit:
    """Compile what runs a query of a manifest: itself or its chain."""
    entry = manifest.queries[name]
    return next(unit for unit in compile_program(manifest, entry.group, {}).units if name in unit.queries)


def observed(manifest: Manifest, name: str) -> Observed:
    """Compile a running query as the optimizer observes it: its plan and those it is on its way from."""
    entry, unit = manifest.queries[name], unit_of(manifest, name)
    plans = dict.fromkeys([entry.plan, *(record.old for record in entry.migrations.values())])
    if entry.shares:
        plans = dict.fromkeys(canonical_plan(query_of(entry), plan) for plan in plans)
    operators = {op.id: op for plan in plans for root in unit.box(plan).roots for op in root.walk()}
    return Observed(name, unit.group, unit.query, unit.labels_of(name), unit.binding.rows(), tuple(operators.values()))


def compile_program(manifest: Manifest, group: str, migrations: Mapping[str, tuple[MigrationStart, ...]]) -> Program:
    """Compile the program of a lane group, once for as long as its queries stay the same.

    `migrations` are by unit.
    """
    chosen = tuple(name for name in sorted(manifest.queries) if manifest.queries[name].group == group)
    units = _units(manifest, group, chosen)
    return Program(units, {unit.name: migrations[unit.name] for unit in units if unit.name in migrations})


_Compiled = dict[tuple[object, ...], tuple[object, tuple[Unit, ...]]]
"""By all else that programs depend on, the versions of static tables that they were compiled for last, and the units:
what is made of a version goes with it.
"""

_REMEMBERED = 8


def _units(manifest: Manifest, group: str, chosen: tuple[str, ...]) -> tuple[Unit, ...]:
    streams, shared = tuple(manifest.streams.values()), _shared(manifest, group)
    asked = tuple([_asked(manifest.queries[name]) for name in chosen])
    key = (streams, manifest.sharing, group, chosen, asked, shared)
    versions = _versions(manifest, chosen)
    # The group's first query keeps what its group compiles to: it stays from step to step, and goes with the engine.
    compiled = kept_with(query_of(manifest.queries[chosen[0]]), "_compiled", _none_compiled) if chosen else {}
    known = compiled.get(key)
    if known is None or known[0] != versions:
        make_room(compiled, _REMEMBERED)
        known = compiled[key] = versions, _compile(manifest, group, chosen)
    return known[1]


def _none_compiled(query: Query) -> _Compiled:
    return {}


def _shared(manifest: Manifest, group: str) -> tuple[str, ...]:
    # Everything about chains and shared sources that a program depends on.
    chains = {name: chain for name, chain in manifest.chains.items() if chain.group == group}
    used = {source for chain in chains.values() for source in chain.sources.values()}
    return (
        str(manifest.reshared),
        *[f"{name} {manifest.shared_sources[name].text}" for name in sorted(used)],
        *[f"{name} {chain.text} {plan_in_step(chain, manifest.step)}" for name, chain in chains.items()],
    )


def _compile(manifest: Manifest, group: str, chosen: tuple[str, ...]) -> tuple[Unit, ...]:
    alone = [name for name in chosen if not manifest.queries[name].shares]
    if len(alone) > 1 and manifest.queries[alone[0]].nodes is not None:
        return (ring_unit(manifest, group, tuple(alone)),)
    users = {name: query_of(manifest.queries[name]) for name in alone}
    known = {name: canonical(query) for name, query in users.items()}
    scopes = {name: _scope(name, manifest.queries[name], known[name][0]) for name in alone}
    columns = _columns({name: query for name, (query, _) in known.items()}, scopes)
    units: list[Unit] = []
    for name in alone:
        query, names = known[name]
        entry = manifest.queries[name]
        operator = _text(entry.operator)
        sums_up = not operator and has_partial_sums(query)
        inputs = _inputs(name, query)
        orders = {names[alias]: order for alias, order in entry.order.items()}
        binding = Binding(query, scopes[name], columns, inputs, keeps=bool(operator), sums_up=sums_up, orders=orders)
        shown = {label: alias for alias, label in names.items()}
        result = replace(
            _operated(f"{name}.{entry.since}", binding, operator)
            if operator
            else compile_result(Asked(binding, f"{name}.{entry.since}", manifest.tables)),
            names=shown,
        )
        units.append(QueryUnit(name, entry.plan, entry.since, group, query, binding, users[name], names, result))
    return tuple(sorted([*units, *chain_units(manifest, group)], key=lambda unit: unit.name))


def _asked(entry: QueryEntry) -> str:
    # Everything about a query that a program depends on, except its name and what it shares; made once for as long as
    # nothing of an entry but its counters changes.
    known: str | None = entry.__dict__.get(_ASKED)
    if known is None:
        own = (entry.query.digest(), entry.plan, entry.since, _text(entry.operator))
        alone = "" if entry.nodes is None else entry.nodes.alone
        past = (entry.entered, entry.sees, entry.from_step, entry.exact_from)
        known = repr((*own, entry.chain, *past, entry.private, alone, sorted(entry.order.items())))
        entry.__dict__[_ASKED] = known
    return known


_ASKED = "_asked"


def _versions(manifest: Manifest, queries: Iterable[str]) -> object:
    # Another store may have other chunks under an equal name.
    if not manifest.tables:
        return ()
    tops = (query_of(manifest.queries[name]).on_top for name in queries)
    found = (manifest.tables[table] for top in tops if top is not None for table in top.tables)
    return tuple((one.version, one.chunk.name, one.chunk.bytes, one.chunk.checksum) for one in found)


def _text(operator: Mapping[str, Any] | None) -> str:
    return "" if operator is None else json.dumps(operator, sort_keys=True)


def _scope(name: str, entry: QueryEntry, query: Query) -> str:
    return f"{entry.since} {name}" if entry.private or is_ordered(query) else f"{entry.since}"


def _inputs(name: str, query: Query) -> dict[str, str]:
    return {stream: f"{stream} for {name}" if is_ordered(query) else stream for stream in query.children}


def _columns(queries: Mapping[str, Query], scopes: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    # By base signature, what any of the queries reads.
    found: dict[str, set[str]] = {}
    for name, query in queries.items():
        binding = Binding(query, scopes[name], {}, {stream: stream for stream in query.children})
        for source in query.sources:
            sign = binding.signature((source.alias,)).digest()
            found.setdefault(sign, set()).update(query.kept_columns(source.alias))
    return {sign: tuple(sorted(names)) for sign, names in found.items()}


def _operated(name: str, binding: Binding, operator: str) -> ResultOperator:
    return UserResultOperator(binding.query, binding.rows(), (), name, decode(OperatorSpec, json.loads(operator)))
