"""From the results of a chain to the answer of each of its queries.

A chain unites the slices that a query reads: here the results of a step are found once, each is placed in its slice
by its age, and a query's answer is a prefix of the slices, in order of time. No result is compared with a query's
window, and the work beyond placing a result once grows with the rows that are delivered, not with the queries (Wang
§5.3: no router, and a union without comparisons, Fig. 5.7). A query's last filter is a look at the rows' lineage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from midstream.model.counters import Counters
from midstream.model.ids import OperatorId
from midstream.operators.need import need_of
from midstream.runtime.lane import Lane
from midstream.runtime.piece_writer import AgeRuns
from midstream.runtime.result_operator import Answer
from midstream.sharing.chain_results import Member, Results, in_order, table_of
from midstream.sharing.delivery import NestedWindows, by_prefix, by_router, merged, nested_windows, within_windows
from midstream.sharing.filter_partition import PartitionJoin
from midstream.sharing.schemes.scheme_contract import Delivery
from midstream.state.combinations import Combinations
from midstream.state.lineage import Lineage
from midstream.state.specs import RowsSpec


@dataclass(frozen=True)
class ChainAnswers:
    """What a chain answers: each member's part of its results.

    Where the scheme partitions the streams, `joins` are those whose results are merged; otherwise there is none.
    """

    chain: str
    rows: Mapping[str, RowsSpec]
    lineages: Mapping[str, Lineage]
    members: tuple[Member, ...]
    delivery: Delivery = "prefix"
    joins: tuple[PartitionJoin, ...] = ()

    @cached_property
    def nested(self) -> tuple[NestedWindows, ...]:
        """The members grouped by filter and by nested windows."""
        return tuple(nested_windows(self.members))

    @cached_property
    def single(self) -> bool:
        """Whether the chain has one member only, whose answer is all that the chain finds."""
        if len(self.members) != 1:
            return False
        demands, filters = self.members[0].demands, self.members[0].filters
        if any(filters[a] and not self.lineages[a].filters[0].conjuncts for a in filters):
            return False
        return need_of([demands], frozenset(demands), self.lineages) is None

    def answer(self, lane: Lane, deltas: Sequence[Combinations], age_runs: AgeRuns = ()) -> dict[str, Answer]:
        """Compute each member's part of the step's results, in order of time.

        `age_runs` gives the ages of runs of results, each as a number of results and the bounds of their age.
        """
        if self.joins:
            return self._merged(lane, deltas)
        (found,) = deltas
        if self._alone(lane, found):
            return {member.name: member.result_operator.emit(lane, (found,)) for member in self.members}
        if not len(found):
            return self._nothing(lane, found)
        results = in_order(lane, self.rows, self.lineages, found, age_runs)
        answers: dict[str, Answer] = {}
        if self.delivery == "router":
            for member in self.members:
                answers[member.name] = by_router(results, member)
        else:
            for nested in self.nested:
                answers.update(by_prefix(results, nested))
        return self._counted(lane, answers, len(found), results.decided)

    def parts(
        self, lane: Lane, deltas: Sequence[Combinations], age_runs: AgeRuns, most: int
    ) -> Iterator[dict[str, Answer]]:
        """Yield the answers in parts of about `most` rows if the only member sees all results, else as a whole."""
        if self.joins or not self._alone(lane, deltas[0]):
            yield self.answer(lane, deltas, age_runs)
            return
        (member,) = self.members
        for answer in member.result_operator.parts(lane, deltas, most):
            yield {member.name: answer}

    def _alone(self, lane: Lane, found: Combinations) -> bool:
        return self.single and (not len(found) or self._sees_all(lane, self.members[0], found))

    def _merged(self, lane: Lane, deltas: Sequence[Combinations]) -> dict[str, Answer]:
        # Each partition's results go to its members by a router.
        parts: dict[str, list[Answer]] = {member.name: [] for member in self.members}
        decided = 0
        for join, found in zip(self.joins, deltas, strict=True):
            results = in_order(lane, self.rows, self.lineages, found, ())
            for member in join.members:
                parts[member.name].append(table_of(results, member, within_windows(results, member)))
            decided += results.decided
        answers = {name: merged(own) for name, own in parts.items()}
        return self._counted(lane, answers, sum(map(len, deltas)), decided)

    def _counted(self, lane: Lane, answers: dict[str, Answer], found: int, decided: int) -> dict[str, Answer]:
        rows_out = sum(len(answer.times) for answer in answers.values())
        route, union = self.operators
        lane.count(route, Counters(predicates=decided))
        lane.count(union, Counters(rows_in=found, rows_out=rows_out))
        return answers

    @cached_property
    def operators(self) -> tuple[OperatorId, ...]:
        """The operator ids of the chain's counters."""
        return OperatorId("route", self.chain), OperatorId("union", self.chain)

    def _nothing(self, lane: Lane, found: Combinations) -> dict[str, Answer]:
        # Members of one select list get one table.
        empty: dict[str, Answer] = {}
        for member in self.members:
            if member.outputs not in empty:
                empty[member.outputs] = member.result_operator.emit(lane, (found,))
        return {member.name: empty[member.outputs] for member in self.members}

    def _sees_all(self, lane: Lane, member: Member, found: Combinations) -> bool:
        return Results(lane, self.rows, self.lineages, found).seen_by(member) is None
