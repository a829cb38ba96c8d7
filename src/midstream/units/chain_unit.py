"""A chain of queries that share one plan, made ready to run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from typing_extensions import override

from midstream.expr.expression import Expression
from midstream.logical.query import query_of
from midstream.migration.strategy_contract import Strategy
from midstream.model.ids import OperatorId, StateId
from midstream.model.manifest import Manifest
from midstream.model.sharing import Chain, Demands
from midstream.operators.binding import Binding
from midstream.operators.compile import compile_plan
from midstream.operators.project import ProjectOperator
from midstream.plan.notation import parse_plan
from midstream.plan.signature import canonical
from midstream.plan.tree import Plan
from midstream.runtime.lane import Lane
from midstream.runtime.lane_key import lane_key
from midstream.runtime.operator import Operator
from midstream.runtime.piece_writer import AgeRuns
from midstream.runtime.result_operator import Answer
from midstream.sharing.chain_answers import ChainAnswers
from midstream.sharing.chain_results import Member
from midstream.sharing.coverage import lineage_of
from midstream.sharing.filter_partition import can_partition, partition_joins
from midstream.sharing.schemes.scheme_contract import scheme
from midstream.sharing.shape import SCOPE, Shape, representative, shape_of
from midstream.state.combinations import Combinations
from midstream.state.specs import RowsSpec
from midstream.units.draft import MigrationStart
from midstream.units.held import held_id
from midstream.units.unit import Selection, Unit


@dataclass(frozen=True)
class ChainUnit(Unit):
    """Queries that run by one plan over shared states; `query` stands for all of them, whose answers `answers` gives.

    Where the scheme partitions the streams, a plan is a join for each set of partitions, and strategies do not move it.
    `labels` has those of each query.
    """

    answers: ChainAnswers
    labels: Mapping[str, Mapping[str, str]]

    @override
    @property
    def queries(self) -> tuple[str, ...]:
        return tuple(member.name for member in self.answers.members)

    @override
    @cached_property
    def lane_key(self) -> Mapping[str, Expression] | None:
        return lane_key(canonical(self.query)[0])

    @override
    def selections(self) -> Iterator[Selection]:
        for label, lineage in self.answers.lineages.items():
            for one in lineage.filters:
                yield Selection(lineage.stream, lineage.conditions_of(one), label in self.binding.orders)

    @override
    def parse(self, notation: str) -> Plan:
        return parse_plan(notation, self.query)

    @override
    def labels_of(self, query: str) -> Mapping[str, str]:
        return self.labels[query]

    @override
    def compile(self, plan: Plan) -> tuple[Operator, ...]:
        if self.answers.joins:
            return tuple(compile_plan(join.binding(self.binding), plan) for join in self.answers.joins)
        return (compile_plan(self.binding, plan),)

    @override
    def open(self, lane: Lane) -> None:
        pass  # A chain reads the streams as they are.

    @override
    def hand_over(
        self, migration: MigrationStart, strategy: Strategy, results: Sequence[Operator], mark: str, lane: Lane
    ) -> None:
        pass  # A query with a user's operator on top runs by itself.

    @override
    def answer(self, lane: Lane, deltas: Sequence[Combinations], age_runs: AgeRuns = ()) -> dict[str, Answer]:
        return self.answers.answer(lane, deltas, age_runs)

    @override
    def parts(
        self, lane: Lane, deltas: Sequence[Combinations], age_runs: AgeRuns, most: int
    ) -> Iterator[dict[str, Answer]]:
        return self.answers.parts(lane, deltas, age_runs, most)

    @override
    @property
    def held_tables(self) -> Mapping[str, StateId]:
        return {member.name: held_id(member.name, member.since) for member in self.answers.members}

    @override
    @property
    def operators(self) -> tuple[OperatorId, ...]:
        return self.answers.operators

    @override
    @property
    def pours(self) -> bool:
        return not self.answers.joins

    @override
    @property
    def migrates(self) -> bool:
        return not self.answers.joins


def chain_unit(manifest: Manifest, name: str) -> ChainUnit:
    """Return the unit of the chain of this name."""
    return next(unit for unit in chain_units(manifest, manifest.chains[name].group) if unit.name == name)


def chain_units(manifest: Manifest, group: str) -> list[ChainUnit]:
    """List the units of a group's chains."""
    names: dict[str, list[str]] = {}
    for name, entry in sorted(manifest.queries.items()):
        if entry.shares and entry.group == group:
            names.setdefault(entry.chain, []).append(name)
    shapes = {name: shape_of(query_of(manifest.queries[name])) for held in names.values() for name in held}
    columns: dict[str, set[str]] = {}
    conditions: dict[tuple[str, str], tuple[Expression, ...]] = {}
    for name, shape in shapes.items():
        for label, demand in manifest.queries[name].demands.items():
            columns.setdefault(demand.source, set()).update(shape.columns[label])
            conditions[demand.source, demand.filter] = shape.filters[label]
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
) -> ChainUnit:
    chain, query = manifest.chains[name], representative(shapes)
    lineages = {
        label: lineage_of(manifest, source, chain, {text: conditions[source, text] for text in
                          manifest.shared_sources[source].filters if (source, text) in conditions})
        for label, source in chain.sources.items()
    }  # fmt: skip
    kept = {label: columns[source] for label, source in chain.sources.items()}
    demands = {member: _demands(manifest, member) for member in shapes}
    inputs = {stream: stream for stream in query.children}
    orders = {
        label: order
        for member, shape in shapes.items()
        for alias, order in manifest.queries[member].order.items()
        if len(shapes) == 1 and len(lineages[label := shape.names[alias]].filters) == 1
    }
    binding = Binding(query, SCOPE, kept, inputs, False, lineages, tuple(demands.values()), orders=orders)
    rows = binding.rows()
    members = tuple(_member(manifest, member, shape, demands[member], rows) for member, shape in shapes.items())
    chosen = scheme(manifest.sharing)
    partitioned = chosen.partitions and can_partition(parse_plan(chain.plan, query))
    joins = partition_joins(members, lineages) if partitioned else ()
    answers = ChainAnswers(name, rows, lineages, members, chosen.delivery, joins if len(joins) > 1 else ())
    plan = plan_in_step(chain, manifest.step)
    labels = {member: shape.names for member, shape in shapes.items()}
    return ChainUnit(name, plan, chain.since, chain.group, query, binding, answers, labels, formerly=chain.former_name)


def plan_in_step(chain: Chain, step: int) -> str:
    """Return the plan that a chain runs by in a step: in its first one that of the chain it was split from."""
    return chain.split_from if chain.since == step and chain.split_from else chain.plan


def _demands(manifest: Manifest, name: str) -> Demands:
    # Where rows are kept by no lineage, filters are left to the router.
    demands = manifest.queries[name].demands
    if scheme(manifest.sharing).filtered:
        return demands
    return {label: replace(demand, filter="") for label, demand in demands.items()}


def _member(manifest: Manifest, name: str, shape: Shape, demands: Demands, rows: Mapping[str, RowsSpec]) -> Member:
    entry = manifest.queries[name]
    outputs = ", ".join(f"{o.name}: {o.expression.text()}" for o in shape.query.outputs)
    ranged = all(shape.kind(label) == "range" for label in shape.sizes)
    past = entry.exact_from if ranged else None
    result_operator = ProjectOperator(shape.query, rows, ())
    seen = (entry.entered, entry.sees, entry.from_step, past)
    return Member(name, entry.since, demands, *seen, shape.filters, result_operator, outputs)
