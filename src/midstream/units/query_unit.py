"""A query that runs by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from typing_extensions import override

from midstream.expr.expression import Expression
from midstream.logical.query import Query
from midstream.migration.strategy_contract import Strategy
from midstream.migration.under_way.hand_over import hand_over
from midstream.model.codec import decode
from midstream.model.ids import StateId
from midstream.operators.arrival import pending_id, release
from midstream.operators.compile import compile_plan
from midstream.operators.lookup import LookupOperator
from midstream.operators.multi_join import MultiJoinOperator
from midstream.operators.project import ProjectOperator
from midstream.operators.user import UserResultOperator
from midstream.operators.user_operator import OperatorSpec
from midstream.plan.notation import parse_plan
from midstream.plan.signature import canonical, relabel_plan
from midstream.plan.tree import Plan
from midstream.runtime.lane import Lane
from midstream.runtime.lane_key import is_ordered, lane_key
from midstream.runtime.operator import Operator
from midstream.runtime.piece_writer import AgeRuns
from midstream.runtime.result_operator import Answer, ResultOperator
from midstream.state.combinations import Combinations
from midstream.state.specs import StateSpec
from midstream.units.draft import MigrationStart
from midstream.units.held import held_id
from midstream.units.unit import Selection, Unit


@dataclass(frozen=True)
class QueryUnit(Unit):
    """A query as the user wrote it (`user`) and canonical under labels (`labels`: alias to label), with its result."""

    user: Query
    labels: Mapping[str, str]
    result_operator: ResultOperator

    @override
    @property
    def queries(self) -> tuple[str, ...]:
        return (self.name,)

    @override
    @cached_property
    def lane_key(self) -> Mapping[str, Expression] | None:
        return lane_key(canonical(self.user)[0])

    @override
    def selections(self) -> Iterator[Selection]:
        for source in self.user.sources:
            own = tuple(e for alias, e in self.user.selections if alias == source.alias)
            # An order of conditions counts every row that they are evaluated for.
            yield Selection(source.stream, own, self.ordered or self.labels[source.alias] in self.binding.orders)

    @override
    def parse(self, notation: str) -> Plan:
        return parse_plan(notation, self.user)

    @override
    def labels_of(self, query: str) -> Mapping[str, str]:
        return self.labels

    @override
    def labelled(self, plan: Plan) -> Plan:
        return relabel_plan(plan, self.labels)

    @override
    def compile(self, plan: Plan) -> tuple[Operator, ...]:
        return self.result_operator.own_roots() or (compile_plan(self.binding, plan),)

    @override
    def answer(self, lane: Lane, deltas: Sequence[Combinations], age_runs: AgeRuns = ()) -> dict[str, Answer]:
        return {self.name: self.result_operator.emit(lane, deltas)}

    @override
    def parts(
        self, lane: Lane, deltas: Sequence[Combinations], age_runs: AgeRuns, most: int
    ) -> Iterator[dict[str, Answer]]:
        for answer in self.result_operator.parts(lane, deltas, most):
            yield {self.name: answer}

    @override
    def rejected_rows(self, lane: Lane) -> dict[str, pa.Table | None]:
        found = self.result_operator.rejected_rows(lane.input)
        return {} if found is None else {self.name: found}

    @override
    @property
    def held_tables(self) -> Mapping[str, StateId]:
        return {self.name: held_id(self.name, self.since)}

    @override
    @cached_property
    def ordered(self) -> bool:
        return is_ordered(self.query)

    @override
    @property
    def rests(self) -> bool:
        return type(self.result_operator) is ProjectOperator and not self.ordered

    @override
    @property
    def pours(self) -> bool:
        return type(self.result_operator) in (ProjectOperator, LookupOperator)

    @override
    @property
    def slack(self) -> int:
        return self.result_operator.slack

    @override
    @property
    def kept(self) -> tuple[StateSpec, ...]:
        return self.result_operator.kept

    @override
    @property
    def queues(self) -> tuple[StateId, ...]:
        return tuple(pending_id(self.name, self.since, stream) for stream in self.streams) if self.ordered else ()

    @override
    def open(self, lane: Lane) -> None:
        if self.ordered:
            own = {stream: self.binding.inputs[stream] for stream in self.streams}
            counted = {stream: own[stream] for stream in self.counted}
            release(lane, self.name, self.since, own, counted, self.columns())

    @override
    def hand_over(
        self, migration: MigrationStart, strategy: Strategy, results: Sequence[Operator], mark: str, lane: Lane
    ) -> None:
        if migration.operator is not None and isinstance(self.result_operator, UserResultOperator):
            spec = decode(OperatorSpec, migration.operator)
            hand_over(self.result_operator, results, spec, strategy, migration.options, mark, lane)

    @override
    def tables(self, lane: Lane) -> frozenset[StateId]:
        return self.result_operator.tables(lane)

    @override
    def reports(self, lane: Lane) -> dict[str, dict[str, Any]]:
        return self.result_operator.reports(lane)


def join_of(unit: QueryUnit) -> MultiJoinOperator:
    """Return the unit's join by probing orders."""
    (root,) = unit.box(unit.plan).roots
    assert isinstance(root, MultiJoinOperator)
    return root
