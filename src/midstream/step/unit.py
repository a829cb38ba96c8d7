"""What runs as one: a query by itself, or a chain, compiled but for its plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from midstream.language.expression import Expression
from midstream.language.query import Query
from midstream.migration.base import PlanBox
from midstream.operators.binding import Binding
from midstream.operators.compile import compile_plan
from midstream.operators.difference import DifferenceOperator
from midstream.plan.notation import parse_plan
from midstream.plan.signature import canonical, relabel_plan
from midstream.plan.tree import Plan
from midstream.runtime.lane_key import lane_key
from midstream.runtime.operator import Operator
from midstream.runtime.result_operator import ResultOperator
from midstream.sharing.answers import Answers


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
    result_operator: ResultOperator
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
        if isinstance(self.result_operator, DifferenceOperator):
            return self.result_operator.roots
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
    def parted(self) -> bool:
        """Whether it runs as several joins, one for each choice of parts."""
        return self.answers is not None and bool(self.answers.choices)

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
