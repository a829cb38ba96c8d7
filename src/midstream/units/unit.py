"""What runs as one on a lane: a query by itself, or a chain of queries that share one plan."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from midstream.expr.expression import Expression
from midstream.logical.query import Query
from midstream.migration.strategy_contract import Strategy
from midstream.migration.under_way.lasting import maker
from midstream.migration.under_way.running import restored
from midstream.model.counters import NOTHING
from midstream.model.frozen import kept_with
from midstream.model.ids import OperatorId, StateId
from midstream.operators.binding import Binding
from midstream.operators.ensure import states_of
from midstream.operators.source import SourceOperator
from midstream.plan.tree import Plan
from midstream.runtime.box import Box, PlanBox
from midstream.runtime.dirty_set import RestingStates
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator
from midstream.runtime.piece_writer import AgeRuns
from midstream.runtime.result_operator import Answer
from midstream.state.combinations import Combinations
from midstream.state.specs import RowsSpec, StateSpec
from midstream.units.draft import MigrationStart


@dataclass(frozen=True)
class Requirements:
    """The `specs` of the states that are read, base rows included; the ids of all `states`, tables and queues that must
    be listed for the unit to go on; the ids that are `counted`, sorted; and what may rest, if all operators do.
    """

    specs: tuple[StateSpec | RowsSpec, ...]
    states: frozenset[StateId]
    counted: tuple[OperatorId, ...]
    resting: RestingStates | None

    @staticmethod
    def of(
        roots: Sequence[Operator],
        kept: Iterable[StateSpec],
        queues: Iterable[StateId],
        counters: Iterable[OperatorId],
    ) -> Requirements:
        """Collect the requirements of the operators of these roots, and of a unit's `kept` states, `queues` and
        `counters`."""
        operators = [operator for root in roots for operator in root.walk()]
        rows = [op.spec for op in operators if isinstance(op, SourceOperator) and op.spec.kept]
        specs: tuple[StateSpec | RowsSpec, ...] = (*kept, *(spec for _, spec in states_of(roots)), *rows)
        tables = {table for operator in operators for table in operator.tables()}
        states = frozenset({*queues, *tables, *(spec.id for spec in specs)})
        counted = {id for operator in operators for id in operator.counted} | {state.counted for state in states}
        return Requirements(specs, states, tuple(sorted(counted | set(counters))), _resting(operators, specs))


def _resting(operators: Sequence[Operator], specs: Sequence[StateSpec | RowsSpec]) -> RestingStates | None:
    # None unless every operator of the plan rests where nothing reaches it.
    if not all(operator.rests for operator in operators):
        return None
    counted = (*(operator.id for operator in operators), *(spec.id.counted for spec in specs))
    # Where chunks are listed by slices, they move on as time goes by.
    still = (spec for spec in specs if spec.lineage is None or len(spec.lineage.cuts) < 2)
    return RestingStates(
        {spec.id: spec for spec in specs},
        {spec.id: spec.lineage.digest if spec.lineage else "" for spec in still},
        dict.fromkeys(counted, NOTHING),
    )


@dataclass(frozen=True)
class Selection:
    """What of a stream some query reads: rows that satisfy all `conditions`; `ordered` where it needs every row."""

    stream: str
    conditions: tuple[Expression, ...]
    ordered: bool = False


@dataclass(frozen=True)
class Unit(ABC):
    """A query or a chain, compiled except for its plan; a frozen value that all lanes of a group share.

    `plan` is the plan it runs by, as it is written for this unit; `query` is canonical, over labels. It ran under the
    name `formerly` before, if that is not empty. What it does in a step is in the `UnitStep` of each lane, which calls
    the methods here; a new kind of unit is a subclass.
    """

    name: str
    plan: str
    since: int
    group: str
    query: Query
    binding: Binding
    formerly: str = field(default="", kw_only=True)
    _boxes: dict[str, PlanBox] = field(default_factory=dict, repr=False, kw_only=True)
    nothing: dict[str, Answer] = field(default_factory=dict, repr=False, kw_only=True)
    """The unit's answers in a step that brings nothing; empty until they are known, or where it may not rest."""

    @property
    @abstractmethod
    def queries(self) -> tuple[str, ...]:
        """The names of the queries it answers."""

    @property
    @abstractmethod
    def lane_key(self) -> Mapping[str, Expression] | None:
        """For each stream what its rows may be spread over lanes by; None: all rows must be in one lane."""

    @abstractmethod
    def selections(self) -> Iterator[Selection]:
        """Yield what the unit reads of its streams, once for each filter that a row may pass."""

    @abstractmethod
    def parse(self, notation: str) -> Plan:
        """Parse a plan as it is written for this unit."""

    @abstractmethod
    def labels_of(self, query: str) -> Mapping[str, str]:
        """Map the aliases in the text of one of its queries to the labels of its operators."""

    def labelled(self, plan: Plan) -> Plan:
        """Write a plan over the labels of its operators."""
        return plan

    @abstractmethod
    def compile(self, plan: Plan) -> tuple[Operator, ...]:
        """Compile a plan over labels, and return the roots of its operators."""

    @abstractmethod
    def answer(self, lane: Lane, deltas: Sequence[Combinations], age_runs: AgeRuns = ()) -> dict[str, Answer]:
        """Make the step's part of each query's answer, from the deltas of the roots.

        `age_runs` say of runs of results, as many as there are, between which ages they are.
        """

    def parts(
        self, lane: Lane, deltas: Sequence[Combinations], age_runs: AgeRuns, most: int
    ) -> Iterator[dict[str, Answer]]:
        """Yield the answers in parts of about `most` rows, each after the one before it in time. They come whole
        unless parts are easy."""
        yield self.answer(lane, deltas, age_runs)

    @property
    @abstractmethod
    def held_tables(self) -> Mapping[str, StateId]:
        """For each query the id of the table of its results that a migration holds back."""

    def place(self) -> str:
        """Name the unit's queries, for an error that happens in its work."""
        return f"query {', '.join(map(repr, self.queries))}"

    @property
    def ordered(self) -> bool:
        """Whether it takes its rows in order of event time, once the watermark has passed them."""
        return False

    @property
    def rests(self) -> bool:
        """Whether it does nothing in a step that brings it no rows, where it holds none."""
        return False

    @property
    def pours(self) -> bool:
        """Whether its answers are those of the parts of its root's output, one after the other."""
        return False

    def note_nothing(self, answers: Mapping[str, Answer]) -> None:
        """Keep the answers of a step, if they are those of one that brings nothing."""
        if not self.nothing and self.rests and not any(a.count or a.dead is not None for a in answers.values()):
            self.nothing.update(answers)

    @property
    def slack(self) -> int:
        """How many microseconds beyond the watermark it needs its states."""
        return 0

    @property
    def kept(self) -> tuple[StateSpec, ...]:
        """The states that hold its roots' output."""
        return ()

    @property
    def queues(self) -> tuple[StateId, ...]:
        """The ids of the lane's queues of rows that wait for the watermark."""
        return ()

    @property
    def operators(self) -> tuple[OperatorId, ...]:
        """The ids that its own counters bear, besides those of its plan's operators."""
        return ()

    @property
    def migrates(self) -> bool:
        """Whether strategies move its state; otherwise a new plan stands alone at once."""
        return True

    @abstractmethod
    def open(self, lane: Lane) -> None:
        """Make inputs of its own, if it has any; called first in a step."""

    @abstractmethod
    def hand_over(
        self, migration: MigrationStart, strategy: Strategy, results: Sequence[Operator], mark: str, lane: Lane
    ) -> None:
        """Change to another user's operator on top, if the command names one; called as a migration begins."""

    def tables(self, lane: Lane) -> frozenset[StateId]:
        """Return the ids of the lane tables that it keeps itself; called after it has answered."""
        return frozenset()

    def rejected_rows(self, lane: Lane) -> dict[str, pa.Table | None]:
        """Return the step's rows that are dead letters of its queries by themselves, by query."""
        return {}

    def reports(self, lane: Lane) -> dict[str, dict[str, Any]]:
        """Report what migrations under way do outside its plan, by their mark, as JSON values."""
        return {}

    def box(self, notation: str) -> PlanBox:
        """Compile the box of a plan, once."""
        if notation not in self._boxes:
            plan = self.parse(notation)
            labelled = self.labelled(plan)
            self._boxes[notation] = PlanBox(labelled, plan.notation(), self.compile(labelled))
        return self._boxes[notation]

    def requirements(self, box: Box) -> Requirements:
        """Return what it requires when a box of its own runs it; found once for each box."""
        return kept_with(box, "_required", self._requirements)

    def _requirements(self, box: Box) -> Requirements:
        return Requirements.of(box.operators(), self.kept, self.queues, self.operators)

    def restored(self, snapshot: Mapping[str, Any]) -> Box:
        """Restore the box of a snapshot; where strategies do not move state, what was on its way has arrived."""
        return restored(snapshot, self.box, maker) if self.migrates else self.box(snapshot["plan"])

    @cached_property
    def streams(self) -> tuple[str, ...]:
        """The streams it reads, each once, in FROM order."""
        return self.query.children

    @cached_property
    def counted(self) -> tuple[str, ...]:
        """The streams whose arrivals its ROWS windows count."""
        return self.query.counted

    def columns(self) -> dict[str, frozenset[str]]:
        """Return the columns it reads of each stream, those of its selections included."""
        return {
            stream: frozenset(
                column
                for source in self.query.sources
                if source.stream == stream
                for column in self.query.columns_of(source.alias)
            )
            for stream in self.streams
        }
