"""Queries made ready to run: a frozen value that every lane of a group shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from midstream.language.parse import parse_query
from midstream.language.plan_notation import parse_plan
from midstream.language.query import Query
from midstream.migration.base import PlanBox
from midstream.model.commands import Migrate
from midstream.model.manifest import Manifest, QueryEntry
from midstream.model.schema import StreamSchema
from midstream.operators.aggregate import AggregateOutlet
from midstream.operators.base import Operator
from midstream.operators.compile import Binding, compile_pair, compile_plan, compile_source, stored_columns
from midstream.operators.difference import DifferenceOutlet
from midstream.operators.outlet import Outlet
from midstream.operators.project import Project
from midstream.plan.signature import canonical, relabel_plan
from midstream.plan.tree import Plan
from midstream.step.lane_key import is_ordered


@dataclass(frozen=True)
class Unit:
    """A query compiled but for its plan: as the user wrote it, and canonical under labels (`names`: alias to label)."""

    name: str
    entry: QueryEntry
    user: Query
    query: Query
    names: Mapping[str, str]
    binding: Binding
    outlet: Outlet
    ordered: bool
    migrations: tuple[Migrate, ...] = ()

    def box(self, notation: str) -> PlanBox:
        """The box of a plan in the user's notation."""
        plan = parse_plan(notation, self.user)
        return PlanBox(plan, plan.notation(), self._roots(relabel_plan(plan, self.names)))

    def _roots(self, plan: Plan) -> tuple[Operator, ...]:
        if isinstance(self.outlet, DifferenceOutlet):
            return self.outlet.roots
        return (compile_plan(self.binding, plan),)

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
    """What a group of lanes runs in one step."""

    streams: Mapping[str, StreamSchema]
    sharing: str
    units: tuple[Unit, ...] = field(default=())


def compile_program(manifest: Manifest, group: str, migrations: Mapping[str, tuple[Migrate, ...]]) -> Program:
    """The program of a lane group: its queries, in order of name, and the migrations that begin with this step."""
    chosen = {name: entry for name, entry in sorted(manifest.queries.items()) if entry.group == group}
    users = {name: parse_query(entry.sql, manifest.streams) for name, entry in chosen.items()}
    parsed = {name: canonical(query) for name, query in users.items()}
    scopes = {name: _scope(name, entry, parsed[name][0], manifest.sharing) for name, entry in chosen.items()}
    columns = _columns({name: query for name, (query, _) in parsed.items()}, scopes)
    units = []
    for name, entry in chosen.items():
        query, names = parsed[name]
        binding = Binding(query, scopes[name], columns, _inputs(name, query))
        moves = tuple(migrations.get(name, ()))
        units.append(Unit(name, entry, users[name], query, names, binding, _outlet(binding), is_ordered(query), moves))
    return Program(manifest.streams, manifest.sharing, tuple(units))


def _scope(name: str, entry: QueryEntry, query: Query, sharing: str) -> str:
    return f"{entry.since}" if sharing != "off" and not is_ordered(query) else f"{entry.since} {name}"


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
