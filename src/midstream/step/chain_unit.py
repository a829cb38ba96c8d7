"""A chain of queries that share one plan, made ready to run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from typing_extensions import override

from midstream.language.expression import Expression
from midstream.migration.base import Strategy
from midstream.model.manifest import Manifest
from midstream.operators.binding import Binding
from midstream.operators.compile import compile_plan
from midstream.operators.need import Want
from midstream.operators.project import ProjectOperator
from midstream.plan.notation import parse_plan
from midstream.plan.signature import canonical
from midstream.plan.tree import Plan
from midstream.runtime.lane import Lane
from midstream.runtime.lane_key import lane_key
from midstream.runtime.operator import Operator
from midstream.runtime.result_operator import Answer
from midstream.sharing.answers import Answers
from midstream.sharing.discovery import scheme
from midstream.sharing.lineages import lineage_of
from midstream.sharing.member import Member
from midstream.sharing.partition import can_part, choices
from midstream.sharing.results import Pieces
from midstream.sharing.shape import SCOPE, Shape, carrier, shape_in
from midstream.state.combinations import Combinations
from midstream.state.lineage import Lineage
from midstream.state.specs import RowsSpec
from midstream.step.draft import MigrationStart
from midstream.step.held import held_id
from midstream.step.unit import Selection, Unit


@dataclass(frozen=True)
class ChainUnit(Unit):
    """Queries that run by one plan over shared states; `query` stands for all of them, whose answers `answers` gives.

    Where push-down has parted the streams, a plan has a join for each choice of parts, and strategies do not move them.
    """

    answers: Answers

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
        for lineage in self.answers.lineages.values():
            for one in lineage.filters:
                yield Selection(lineage.stream, one.conditions)

    @override
    def parse(self, notation: str) -> Plan:
        return parse_plan(notation, self.query)

    @override
    def compile(self, plan: Plan) -> tuple[Operator, ...]:
        if self.answers.choices:
            return tuple(compile_plan(choice.binding(self.binding), plan) for choice in self.answers.choices)
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
    def answer(self, lane: Lane, deltas: Sequence[Combinations], pieces: Pieces = ()) -> dict[str, Answer]:
        return self.answers.give(lane, deltas, pieces)

    @override
    @property
    def held_tables(self) -> Mapping[str, str]:
        return {member.name: held_id(member.name, member.since) for member in self.answers.members}

    @override
    @property
    def operators(self) -> tuple[str, ...]:
        return self.answers.operators

    @override
    @property
    def migrates(self) -> bool:
        return not self.answers.choices


def chain_units(manifest: Manifest, group: str) -> list[ChainUnit]:
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
) -> ChainUnit:
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
    chosen = scheme(manifest.sharing)
    parted = chosen.partitions and can_part(parse_plan(chain.plan, query))
    parts = choices(members, lineages) if parted else ()
    answers = Answers(name, rows, lineages, members, chosen.delivery, parts if len(parts) > 1 else ())
    came = chain.origin if chain.founded == manifest.step and chain.origin else chain.plan
    return ChainUnit(name, came, chain.founded, chain.group, query, binding, answers, formerly=chain.formerly)


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
    result_operator = ProjectOperator(shape.query, rows, ())
    return Member(name, entry.since, want, entry.joined, entry.sees, past, shape.filters, result_operator, outputs)
