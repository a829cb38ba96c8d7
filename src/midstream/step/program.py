"""Queries made ready to run: a frozen value that every lane of a group shares."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from midstream.eddy.compile import compile_plan
from midstream.language.parse import parse_query
from midstream.language.plan_notation import parse_plan
from midstream.language.query import Query
from midstream.migration.base import PlanBox
from midstream.model.commands import Migrate
from midstream.model.manifest import Manifest
from midstream.model.schema import StreamSchema
from midstream.operators.aggregate import AggregateOutlet
from midstream.operators.base import Operator
from midstream.operators.compile import Binding, compile_pair, compile_source, stored_columns
from midstream.operators.difference import DifferenceOutlet
from midstream.operators.outlet import Outlet
from midstream.operators.project import Project
from midstream.operators.user import UserOutlet
from midstream.operators.user_operator import OperatorSpec
from midstream.plan.signature import Signature, canonical, relabel_plan
from midstream.plan.tree import Plan
from midstream.step.lane_key import is_ordered


@dataclass(frozen=True)
class Unit:
    """A query compiled but for its plan: as the user wrote it, and canonical under labels (`names`: alias to label)."""

    name: str
    plan: str
    since: int
    group: str
    user: Query
    query: Query
    names: Mapping[str, str]
    binding: Binding
    outlet: Outlet
    ordered: bool
    _boxes: dict[str, PlanBox] = field(default_factory=dict, repr=False)

    def box(self, notation: str) -> PlanBox:
        """The box of a plan in the user's notation."""
        if notation not in self._boxes:
            plan = parse_plan(notation, self.user)
            roots = self._roots(relabel_plan(plan, self.names))
            self._boxes[notation] = PlanBox(plan, plan.notation(), roots)
        return self._boxes[notation]

    def _roots(self, plan: Plan) -> tuple[Operator, ...]:
        if isinstance(self.outlet, DifferenceOutlet):
            return self.outlet.roots
        return (compile_plan(self.binding, plan),)

    def columns(self) -> dict[str, frozenset[str]]:
        """The columns the query reads of each stream, those of its selections included."""
        return {
            stream: frozenset(
                column
                for source in self.query.sources
                if source.stream == stream
                for column in self.query.columns_of(source.alias)
            )
            for stream in self.streams
        }

    def may_read(self, signature: Signature, labels: tuple[str, ...]) -> bool:
        """Whether some plan of the query has a state of this signature over these sources."""
        return set(labels) <= set(self.query.aliases) and self.binding.signature(labels) == signature

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams the query reads, each once, in FROM order."""
        return tuple(dict.fromkeys(s.stream for s in self.query.sources))

    @property
    def counted(self) -> tuple[str, ...]:
        """The streams whose arrivals the query's ROWS windows count."""
        rows = {s.stream for s in self.query.sources if s.window is not None and s.window.kind == "rows"}
        return tuple(stream for stream in self.streams if stream in rows)


@dataclass(frozen=True)
class Program:
    """What a group of lanes runs in one step: its queries, in order of name, and the migrations that begin with it."""

    units: tuple[Unit, ...]
    migrations: Mapping[str, tuple[Migrate, ...]]


Streams = tuple[StreamSchema, ...]


def parsed(manifest: Manifest, sql: str) -> Query:
    """A query's text over a manifest's streams, parsed once."""
    return _parsed(tuple(manifest.streams.values()), sql)


def unit_of(manifest: Manifest, name: str) -> Unit:
    """A running query of a manifest, compiled."""
    group = manifest.queries[name].group
    return next(unit for unit in compile_program(manifest, group, {}).units if unit.name == name)


def compile_program(manifest: Manifest, group: str, migrations: Mapping[str, tuple[Migrate, ...]]) -> Program:
    """The program of a lane group; compiled once for as long as its queries stay the same."""
    chosen = tuple(
        (name, entry.sql, entry.plan, entry.since, _text(entry.operator))
        for name, entry in sorted(manifest.queries.items())
        if entry.group == group
    )
    units = _units(tuple(manifest.streams.values()), manifest.sharing, group, chosen)
    return Program(units, {name: migrations[name] for name, *_ in chosen if name in migrations})


@lru_cache(maxsize=1024)
def _parsed(streams: Streams, sql: str) -> Query:
    return parse_query(sql, {stream.name: stream for stream in streams})


@lru_cache(maxsize=64)
def _units(
    streams: Streams, sharing: str, group: str, chosen: tuple[tuple[str, str, str, int, str], ...]
) -> tuple[Unit, ...]:
    users = {name: _parsed(streams, sql) for name, sql, *_ in chosen}
    known = {name: canonical(query) for name, query in users.items()}
    scopes = {name: _scope(name, since, known[name][0], sharing) for name, _, _, since, _ in chosen}
    columns = _columns({name: query for name, (query, _) in known.items()}, scopes)
    units = []
    for name, _, plan, since, operator in chosen:
        query, names = known[name]
        binding = Binding(query, scopes[name], columns, _inputs(name, query), keeps=bool(operator))
        outlet = _operated(f"{name}.{since}", binding, operator) if operator else _outlet(binding)
        units.append(Unit(name, plan, since, group, users[name], query, names, binding, outlet, is_ordered(query)))
    return tuple(units)


def _scope(name: str, since: int, query: Query, sharing: str) -> str:
    return f"{since}" if sharing != "off" and not is_ordered(query) else f"{since} {name}"


def _inputs(name: str, query: Query) -> dict[str, str]:
    return {s.stream: f"{s.stream} for {name}" if is_ordered(query) else s.stream for s in query.sources}


def _columns(queries: Mapping[str, Query], scopes: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """For each base signature the payload that any of the queries reads."""
    found: dict[str, set[str]] = {}
    for name, query in queries.items():
        binding = Binding(query, scopes[name], {}, {s.stream: s.stream for s in query.sources})
        for source in query.sources:
            sign = binding.signature((source.alias,)).digest()
            found.setdefault(sign, set()).update(stored_columns(query, source.alias))
    return {sign: tuple(sorted(names)) for sign, names in found.items()}


def _text(operator: Mapping[str, Any] | None) -> str:
    return "" if operator is None else json.dumps(operator, sort_keys=True)


def _operated(name: str, binding: Binding, operator: str) -> Outlet:
    return UserOutlet(binding.query, binding.rows(), (), name, OperatorSpec.from_json(json.loads(operator)))


def _outlet(binding: Binding) -> Outlet:
    query, rows = binding.query, binding.rows()
    if query.difference is not None:
        minuend = query.difference.minuend
        roots: tuple[Operator, ...] = (
            compile_source(binding, minuend),
            *(compile_pair(binding, minuend, other) for other in query.difference.subtrahends),
        )
        kept = (
            binding.state((minuend,), "scan"),
            *(binding.state((minuend, other), "scan") for other in query.difference.subtrahends),
        )
        return DifferenceOutlet(query, rows, kept, roots)
    if query.aggregate is not None:
        return AggregateOutlet(query, rows, (binding.state([s.alias for s in query.sources], "scan"),))
    return Project(query, rows, ())
