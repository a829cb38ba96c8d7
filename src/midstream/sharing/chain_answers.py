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

import numpy as np
import pyarrow as pa

from midstream.expr.evaluate import holds
from midstream.model.counters import Counters
from midstream.model.ids import OperatorId
from midstream.operators.need import need_of
from midstream.runtime.lane import Lane
from midstream.runtime.piece_writer import AgeRuns
from midstream.runtime.result_operator import Answer
from midstream.sharing.chain_results import Mask, Member, Results, in_order, table_of
from midstream.sharing.filter_partition import PartitionJoin
from midstream.sharing.schemes.scheme_contract import Delivery
from midstream.state.combinations import Combinations, Words
from midstream.state.keys import stable_order
from midstream.state.lineage import Lineage
from midstream.state.rows import take
from midstream.state.specs import RowsSpec

FEW = 16
"""A prefix so many times shorter than all results is sorted; a longer one is found by looking at each result."""

AT_ONCE = 1 << 18
"""Rows of small answers that are taken together, before each gets its part."""


@dataclass(frozen=True)
class NestedWindows:
    """Queries of one filter on each source, by windows of which each lies within the next.

    `filters` and `sizes` are by label; `members[i]` are the queries whose windows are `sizes[i]`.
    """

    filters: Mapping[str, str]
    sizes: tuple[Mapping[str, int], ...]
    members: tuple[tuple[Member, ...], ...]


def nested_windows(members: Sequence[Member]) -> list[NestedWindows]:
    """Group members by filter; windows that are not nested form several groups."""
    by_filter: dict[tuple[tuple[str, str], ...], dict[tuple[tuple[str, int], ...], list[Member]]] = {}
    for member in members:
        ordered = sorted(member.demands.items())
        filters, sizes = tuple((a, d.filter) for a, d in ordered), tuple((a, d.size) for a, d in ordered)
        by_filter.setdefault(filters, {}).setdefault(sizes, []).append(member)
    found = []
    for filters, by_sizes in by_filter.items():
        waiting = sorted(by_sizes, key=lambda sizes: [size for _, size in sizes])
        while waiting:
            nested, others = waiting[:1], waiting[:0]
            for sizes in waiting[1:]:
                within = all(a <= b for (_, a), (_, b) in zip(nested[-1], sizes, strict=True))
                (nested if within else others).append(sizes)
            alike = tuple(tuple(by_sizes[sizes]) for sizes in nested)
            found.append(NestedWindows(dict(filters), tuple(map(dict, nested)), alike))
            waiting = others
    return found


def by_prefix(results: Results, nested: NestedWindows) -> dict[str, Answer]:
    """Answer queries with nested windows by prefixes of the results, with no test against a query's window."""
    levels, passed = results.levels(nested.sizes), results.passed(nested.filters)
    within = levels < len(nested.sizes)
    here = np.flatnonzero(within if passed is None else passed & within)
    levels = levels[here]
    by_level = np.argsort(levels, kind="stable")
    ends = np.searchsorted(levels[by_level], np.arange(len(nested.sizes)), "right")
    prefix = np.zeros(0, np.int64)
    places: dict[str, dict[str, Words]] = {}
    first: dict[str, Member] = {}
    for level, end in enumerate(ends.tolist()):
        if len(prefix) != end:
            prefix = _up_to(level, end, levels, by_level)
        for member in nested.members[level]:
            seen = results.seen_by(member)
            first.setdefault(member.outputs, member)
            own = prefix if seen is None else prefix[seen[here[prefix]]]
            places.setdefault(member.outputs, {})[member.name] = own
    answers: dict[str, Answer] = {}
    for outputs, own_places in places.items():
        answers.update(portions(table_of(results, first[outputs], here), own_places))
    return answers


def _up_to(level: int, end: int, levels: Words, by_level: Words) -> Words:
    # In order; looking at all results is cheaper than sorting many.
    if end == len(levels):
        return np.arange(end)
    return np.sort(by_level[:end]) if end * FEW < len(levels) else np.flatnonzero(levels <= level)


def portions(whole: Answer, places: Mapping[str, Words]) -> Iterator[tuple[str, Answer]]:
    """Take each query's rows of an answer: equal places give one table, small ones are taken together."""
    alike: dict[int, list[str]] = {}
    for name, at in places.items():
        alike.setdefault(id(at), []).append(name)
    waiting: list[tuple[list[str], Words]] = []
    size = 0
    for names in alike.values():
        at = places[names[0]]
        if len(at) == len(whole.times):
            yield from ((name, whole) for name in names)
            continue
        waiting.append((names, at))
        size += len(at)
        if size >= AT_ONCE:
            yield from _taken(whole, waiting)
            waiting, size = [], 0
    yield from _taken(whole, waiting)


def _taken(whole: Answer, waiting: Sequence[tuple[list[str], Words]]) -> Iterator[tuple[str, Answer]]:
    if not waiting:
        return
    at = waiting[0][1] if len(waiting) == 1 else np.concatenate([places for _, places in waiting])
    table, times = take(whole.table, at), whole.times[at]
    start = 0
    for names, places in waiting:
        end = start + len(places)
        own = Answer(table.slice(start, len(places)), times[start:end])
        yield from ((name, own) for name in names)
        start = end


def by_router(results: Results, member: Member) -> Answer:
    """Answer a member by testing every result against its windows, and those that remain against its filters.

    The baseline (Wang §4.1): work grows with results times queries.
    """
    at = within_windows(results, member)
    for conditions in member.filters.values():
        for condition in conditions:
            results.decided += len(at)
            left = Combinations(results.found.take(at).refs, {}, {})
            at = at[holds(condition, results.lane.reader(results.rows, left), len(at))]
    return table_of(results, member, at)


def within_windows(results: Results, member: Member) -> Words:
    """Find the results within a member's windows, made of rows that it sees."""
    mask: Mask = np.ones(len(results.found), np.bool_)
    for label, demand in member.demands.items():
        mask &= results.age(label) <= demand.size
    results.decided += len(mask)
    seen = results.seen_by(member)
    return np.flatnonzero(mask if seen is None else mask & seen)


def merged(answers: Sequence[Answer]) -> Answer:
    """Merge the answers of disjoint joins in order of time (the order-preserving union of Wang §4.2)."""
    if len(answers) == 1:
        return answers[0]
    times = np.concatenate([answer.times for answer in answers])
    order = stable_order(times)
    table = pa.concat_tables([answer.table for answer in answers]).take(pa.array(order))
    return Answer(table.combine_chunks(), times[order])


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
