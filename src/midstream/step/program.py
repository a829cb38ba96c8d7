"""Queries made ready to run: a frozen value that every lane of a group shares."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import count
from typing import Any

from midstream.eddy.compile import compile_plan
from midstream.language.expression import Expression
from midstream.language.parse import parse_query
from midstream.language.plan_notation import parse_plan
from midstream.language.query import Query
from midstream.migration.base import PlanBox
from midstream.model.commands import Migrate
from midstream.model.manifest import Manifest, QueryEntry
from midstream.model.schema import StreamSchema
from midstream.operators.aggregate import AggregateOutlet
from midstream.operators.base import Operator
from midstream.operators.compile import Binding, compile_pair, compile_source, stored_columns
from midstream.operators.difference import DifferenceOutlet
from midstream.operators.need import Want
from midstream.operators.outlet import Outlet
from midstream.operators.project import Project
from midstream.operators.user import UserOutlet
from midstream.operators.user_operator import OperatorSpec
from midstream.plan.signature import canonical, relabel_plan
from midstream.plan.tree import Plan
from midstream.sharing.answers import Answers
from midstream.sharing.discovery import scheme
from midstream.sharing.lineages import lineage_of
from midstream.sharing.member import Member
from midstream.sharing.partition import can_part, choices
from midstream.sharing.shape import SCOPE, Shape, carrier, shape_of
from midstream.state.lineage import Lineage
from midstream.state.specs import RowsSpec
from midstream.step.lane_key import SINGLE, Spread, fits, group_name, is_ordered, lane_key, spread_text


@dataclass(frozen=True)
class Unit:
    """A query compiled but for its plan: as the user wrote it, and canonical under labels (`names`: alias to label).

    Or a chain: then `query` stands for all its `members`, whose answers `answers` gives.
    """

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
    answers: Answers | None = None
    formerly: str = ""
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
        if self.answers is not None and self.answers.choices:
            return tuple(compile_plan(choice.binding(self.binding), plan) for choice in self.answers.choices)
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

    @cached_property
    def lane_key(self) -> dict[str, Expression] | None:
        """What its rows may be spread by."""
        return lane_key(canonical(self.user)[0])

    @property
    def queries(self) -> tuple[str, ...]:
        """The names of the queries it answers."""
        return (self.name,) if self.answers is None else tuple(member.name for member in self.answers.members)

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

    @property
    def lane_key(self) -> dict[str, Expression] | None:
        """For each stream what spreads its rows: the queries of a group agree on it. None: one lane."""
        keys = [key for unit in self.units if (key := unit.lane_key) is not None]
        return {stream: expression for key in keys for stream, expression in key.items()} or None


Streams = tuple[StreamSchema, ...]


def parsed(manifest: Manifest, sql: str) -> Query:
    """A query's text over a manifest's streams, parsed once."""
    return _parsed(tuple(manifest.streams.values()), sql)


def shape_in(manifest: Manifest, sql: str) -> Shape:
    """What of a query's text matters to sharing."""
    return _shape(tuple(manifest.streams.values()), sql)


def canonical_plan(manifest: Manifest, sql: str, plan: str) -> str:
    """A query's plan in terms of the labels it shares with others."""
    shape = shape_in(manifest, sql)
    return relabel_plan(parse_plan(plan, shape.user), shape.names).notation()


def own_plan(manifest: Manifest, sql: str, notation: str) -> str:
    """A plan in terms of labels, as the query itself would write it."""
    shape = shape_in(manifest, sql)
    back = {label: alias for alias, label in shape.names.items()}
    return relabel_plan(parse_plan(notation, shape.query), back).notation()


def group_for(manifest: Manifest, query: Query) -> tuple[str, Spread]:
    """The lane group of a query, and what spreads its rows.

    One whose rows are where the query wants them, so that it can share them; else one of its own.
    """
    key = lane_key(canonical(query)[0])
    own, mine = group_name(key), spread_text(key)
    if key is None:
        return own, mine
    theirs: dict[str, set[Spread]] = {}
    for entry in manifest.queries.values():
        theirs.setdefault(entry.group, set()).add(entry.spread)
    names = sorted(theirs.keys() - {SINGLE}, key=lambda name: (name != own, name))
    fitting = (name for name in names if _fits_all(mine, theirs[name]))
    return next(fitting, None) or next(name for name in _names(own) if name not in theirs), mine


def _names(own: str) -> Iterator[str]:
    yield own
    yield from (f"{own}-{n}" for n in count(1))


def _fits_all(mine: Spread, theirs: Collection[Spread]) -> bool:
    """Whether a key agrees with those of a group: with each on what both have, and with one at least on something."""
    told = {stream: text for spread in theirs for stream, text in spread}
    return fits(mine, tuple(sorted(told.items())))


def unit_of(manifest: Manifest, name: str) -> Unit:
    """What runs a query of a manifest: itself or its chain, compiled."""
    entry = manifest.queries[name]
    wanted = entry.unit(name)
    return next(unit for unit in compile_program(manifest, entry.group, {}).units if unit.name == wanted)


def compile_program(manifest: Manifest, group: str, migrations: Mapping[str, tuple[Migrate, ...]]) -> Program:
    """The program of a lane group; compiled once for as long as its queries stay the same.

    `migrations` are by unit.
    """
    chosen = tuple(_asked(name, entry) for name, entry in sorted(manifest.queries.items()) if entry.group == group)
    units = _units(manifest, group, chosen)
    return Program(units, {unit.name: migrations[unit.name] for unit in units if unit.name in migrations})


@lru_cache(maxsize=1 << 14)
def _parsed(streams: Streams, sql: str) -> Query:
    return parse_query(sql, {stream.name: stream for stream in streams})


@lru_cache(maxsize=1 << 14)
def _shape(streams: Streams, sql: str) -> Shape:
    return shape_of(_parsed(streams, sql))


_COMPILED: dict[tuple[object, ...], tuple[Unit, ...]] = {}
_REMEMBERED = 64


def _units(manifest: Manifest, group: str, chosen: tuple[tuple[Any, ...], ...]) -> tuple[Unit, ...]:
    streams, shared = tuple(manifest.streams.values()), _shared(manifest, group)
    key = (streams, manifest.sharing, group, chosen, shared)
    if key not in _COMPILED:
        while len(_COMPILED) >= _REMEMBERED:
            del _COMPILED[next(iter(_COMPILED))]
        _COMPILED[key] = _compile(manifest, group, chosen)
    return _COMPILED[key]


def _shared(manifest: Manifest, group: str) -> tuple[str, ...]:
    """Everything about chains and holdings that a program depends on."""
    chains = {name: chain for name, chain in manifest.chains.items() if chain.group == group}
    used = {holding for chain in chains.values() for holding in chain.holdings.values()}
    held = [f"{name} {manifest.holdings[name]}" for name in sorted(used)]
    return (
        str(manifest.reshared),
        *held,
        *(f"{name} {chain} {chain.founded == manifest.step}" for name, chain in chains.items()),
    )


def _compile(manifest: Manifest, group: str, chosen: tuple[tuple[Any, ...], ...]) -> tuple[Unit, ...]:
    alone = [name for name, *_ in chosen if not manifest.queries[name].shares]
    users = {name: parsed(manifest, manifest.queries[name].sql) for name in alone}
    known = {name: canonical(query) for name, query in users.items()}
    scopes = {name: _scope(name, manifest.queries[name], known[name][0]) for name in alone}
    columns = _columns({name: query for name, (query, _) in known.items()}, scopes)
    units = []
    for name in alone:
        query, names = known[name]
        entry = manifest.queries[name]
        operator = _text(entry.operator)
        binding = Binding(query, scopes[name], columns, _inputs(name, query), keeps=bool(operator))
        outlet = _operated(f"{name}.{entry.since}", binding, operator) if operator else _outlet(binding)
        ordered = is_ordered(query)
        units.append(Unit(name, entry.plan, entry.since, group, users[name], query, names, binding, outlet, ordered))
    units += chain_units(manifest, group)
    return tuple(sorted(units, key=lambda unit: unit.name))


def chain_units(manifest: Manifest, group: str) -> list[Unit]:
    """The units of a group's chains."""
    names: dict[str, list[str]] = {}
    for name, entry in sorted(manifest.queries.items()):
        if entry.shares and entry.group == group:
            names.setdefault(entry.chain, []).append(name)
    shapes = {name: shape_in(manifest, manifest.queries[name].sql) for held in names.values() for name in held}
    columns: dict[str, set[str]] = {}
    conditions: dict[tuple[str, str], tuple[Expression, ...]] = {}
    for name, shape in shapes.items():
        for label, wanted in manifest.queries[name].wants.items():
            columns.setdefault(wanted.holding, set()).update(shape.reads[label])
            conditions[wanted.holding, wanted.filter] = shape.filters[label]
    stored = {base: tuple(sorted(read)) for base, read in columns.items()}
    return [
        _chain_unit(manifest, chain, {name: shapes[name] for name in held}, stored, conditions)
        for chain, held in names.items()
    ]


def _chain_unit(
    manifest: Manifest,
    name: str,
    shapes: Mapping[str, Shape],
    columns: Mapping[str, tuple[str, ...]],
    conditions: Mapping[tuple[str, str], tuple[Expression, ...]],
) -> Unit:
    chain, query = manifest.chains[name], carrier(shapes)
    lineages = {
        label: lineage_of(manifest, holding, chain, {text: conditions[holding, text] for text in
                          manifest.holdings[holding].filters if (holding, text) in conditions})
        for label, holding in chain.holdings.items()
    }  # fmt: skip
    kept = {label: columns[holding] for label, holding in chain.holdings.items()}
    wants = {member: _want(manifest, member, lineages) for member in shapes}
    binding = Binding(
        query, SCOPE, kept, {s.stream: s.stream for s in query.sources}, False, lineages, tuple(wants.values())
    )
    rows = binding.rows()
    members = tuple(_member(manifest, member, shape, wants[member], rows) for member, shape in shapes.items())
    delivery = scheme(manifest.sharing).delivery
    parted = delivery == "partition" and can_part(parse_plan(chain.plan, query))
    parts = choices(members, lineages) if parted else ()
    answers = Answers(name, rows, lineages, members, delivery, parts if len(parts) > 1 else ())
    identity = {label: label for label in query.aliases}
    came = chain.origin if chain.founded == manifest.step and chain.origin else chain.plan
    return Unit(
        name,
        came,
        chain.founded,
        chain.group,
        query,
        query,
        identity,
        binding,
        members[0].outlet,
        False,
        answers,
        chain.formerly,
    )


def _want(manifest: Manifest, name: str, lineages: Mapping[str, Lineage]) -> Want:
    wants = manifest.queries[name].wants
    bits = {label: manifest.holdings[w.holding].filters[w.filter].bit for label, w in wants.items()}
    if not scheme(manifest.sharing).filtered:
        bits = {label: lineage.filters[0].bit for label, lineage in lineages.items()}
    return Want(bits, {label: w.size for label, w in wants.items()})


def _member(manifest: Manifest, name: str, shape: Shape, want: Want, rows: Mapping[str, RowsSpec]) -> Member:
    entry = manifest.queries[name]
    outputs = ", ".join(f"{o.name}: {o.expression.text()}" for o in shape.query.outputs)
    ranged = all(shape.kind(label) == "range" for label in shape.sizes)
    past = entry.exact_from if ranged else None
    outlet = Project(shape.query, rows, ())
    return Member(name, entry.since, want, entry.joined, entry.sees, past, shape.filters, outlet, outputs)


def _scope(name: str, entry: QueryEntry, query: Query) -> str:
    return f"{entry.since} {name}" if entry.apart or is_ordered(query) else f"{entry.since}"


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


def _asked(name: str, entry: QueryEntry) -> tuple[object, ...]:
    """Everything about a query that a program depends on, but for what it shares."""
    own = (name, entry.sql, entry.plan, entry.since, _text(entry.operator))
    return (*own, entry.chain, entry.joined, entry.sees, entry.exact_from, entry.apart)


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
