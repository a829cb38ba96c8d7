"""Queries that share the nodes of one ring, made ready to run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from typing_extensions import override

from midstream.logical.query import query_of
from midstream.model.ids import StateId, digest
from midstream.model.manifest import Manifest
from midstream.operators.binding import Binding
from midstream.operators.project import ProjectOperator
from midstream.ring.shared_queries import RingQuery, SharedQueries
from midstream.runtime.result_operator import ResultOperator
from midstream.sharing.shape import Shape, canonical_plan, representative, shape_of
from midstream.state.lineage import ARRIVED
from midstream.units.held import held_id
from midstream.units.query_unit import QueryUnit
from midstream.units.unit import Selection


@dataclass(frozen=True)
class RingMember:
    """A query of a ring: since when it runs, by alias the labels of its sources, and what it shows of results."""

    name: str
    since: int
    labels: Mapping[str, str]
    result_operator: ResultOperator


@dataclass(frozen=True)
class RingUnit(QueryUnit):
    """Queries that share the nodes of a ring (Wang Part III); it bears the name of the first.

    `query` and `user` stand for all: their join, with the widest window on each source and no selection. Rows are kept
    with the columns that any of them reads and the step they arrived in; what each is needed for is said by `shared`.
    """

    members: tuple[RingMember, ...]
    shared: SharedQueries

    @override
    @property
    def queries(self) -> tuple[str, ...]:
        return tuple(member.name for member in self.members)

    def since_of(self, query: str) -> int:
        """Return the step since which one of its queries runs."""
        return next(member.since for member in self.members if member.name == query)

    @override
    def selections(self) -> Iterator[Selection]:
        for query in self.shared.queries:
            for source in self.query.sources:
                yield Selection(source.stream, query.selections[source.alias])

    @override
    def labels_of(self, query: str) -> Mapping[str, str]:
        return next(member.labels for member in self.members if member.name == query)

    @override
    @cached_property
    def held_tables(self) -> Mapping[str, StateId]:
        return {member.name: held_id(member.name, member.since) for member in self.members}


def ring_unit(manifest: Manifest, group: str, names: tuple[str, ...]) -> RingUnit:
    """Make the unit of these queries, in order of name, which share the nodes of a group."""
    entries = {name: manifest.queries[name] for name in names}
    shapes = {name: shape_of(query_of(entry)) for name, entry in entries.items()}
    query, first = representative(shapes), entries[names[0]]
    scope = "ring " + digest(" ".join(f"{name} {entry.since}" for name, entry in entries.items()))
    inputs = {stream: stream for stream in query.children}
    bare = Binding(query, scope, {}, inputs)
    columns = {bare.signature((label,)).digest(): _columns(shapes, label) for label in query.aliases}
    binding = Binding(query, scope, columns, inputs)
    members = tuple(
        RingMember(name, entries[name].since, shape.names, ProjectOperator(shape.query, binding.rows(), ()))
        for name, shape in shapes.items()
    )
    assert first.nodes is not None
    alone = first.nodes.alone
    shared = SharedQueries(
        tuple(
            RingQuery(name, shape.sizes, shape.filters, None if name == alone else entries[name].entered)
            for name, shape in shapes.items()
        )
    )
    plan, since = canonical_plan(query_of(first), first.plan), min(entry.since for entry in entries.values())
    labels = {label: label for label in query.aliases}
    return RingUnit(
        names[0], plan, since, group, query, binding, query, labels, members[0].result_operator, members, shared
    )


def _columns(shapes: Mapping[str, Shape], label: str) -> tuple[str, ...]:
    return tuple(sorted({ARRIVED, *(name for shape in shapes.values() for name in shape.columns[label])}))
