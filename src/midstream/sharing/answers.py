"""From the results of a chain to the answer of each of its queries.

A chain unites the slices that a query reads: here the results of a step are found once, each is placed in its slice
by its age, and a query's answer is a prefix of the slices, in order of time. No result is compared with a query's
window, and the work beyond placing a result once grows with the rows that are delivered, not with the queries (Wang
§5.3: no router, and a union without comparisons, Fig. 5.7). A query's last filter is a look at the rows' lineage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from midstream.model.counters import Counters
from midstream.operators.need import need_of
from midstream.operators.outlet import Answer
from midstream.sharing.member import Member
from midstream.sharing.partition import Choice
from midstream.sharing.results import Pieces, Results, in_order, table_of
from midstream.sharing.router import merged, routed, within
from midstream.sharing.schemes.base import Delivery
from midstream.state.combinations import Combinations, Words
from midstream.state.lane import Lane
from midstream.state.lineage import Lineage
from midstream.state.rows import take
from midstream.state.specs import RowsSpec

FEW = 16
"""A prefix so many times shorter than all results is sorted; a longer one is found by looking at each result."""


@dataclass(frozen=True)
class Ladder:
    """Queries of one filter whose windows are nested: `rungs` ascend, each with those that have this window."""

    bits: Mapping[str, int]
    sizes: tuple[Mapping[str, int], ...]
    rungs: tuple[tuple[Member, ...], ...]


@dataclass(frozen=True)
class Answers:
    """How the results of a chain are given to its members."""

    chain: str
    rows: Mapping[str, RowsSpec]
    lineages: Mapping[str, Lineage]
    members: tuple[Member, ...]
    delivery: Delivery = "prefix"
    choices: tuple[Choice, ...] = ()
    uniform: bool = True

    @cached_property
    def ladders(self) -> tuple[Ladder, ...]:
        """The members by filter, and by nested windows."""
        return tuple(ladders(self.members))

    @cached_property
    def plain(self) -> bool:
        """Whether one member is all there is, so that what the chain finds is its answer.

        Combinations of three rows and more may have been made for wider windows that are gone.
        """
        if len(self.members) != 1 or not (self.uniform or len(self.lineages) == 2):
            return False
        want, filters = self.members[0].want, self.members[0].filters
        if any(filters[a] and not self.lineages[a].filters[0].conditions for a in filters):
            return False
        return need_of([want], frozenset(want.sizes), self.lineages) is None

    def give(self, lane: Lane, deltas: Sequence[Combinations], pieces: Pieces = ()) -> dict[str, Answer]:
        """Each member's part of the step's answer, in order of time.

        `pieces` say of runs of results, as many as there are, between which ages they are.
        """
        if self.choices:
            return self._merged(lane, deltas)
        (found,) = deltas
        if self.plain and (not len(found) or self._sees_all(lane, self.members[0], found)):
            return {member.name: member.outlet.emit(lane, (found,)) for member in self.members}
        if not len(found):
            return self._nothing(lane, found)
        results = in_order(lane, self.rows, self.lineages, found, pieces)
        given: dict[str, Answer] = {}
        if self.delivery == "router":
            for member in self.members:
                given[member.name] = routed(results, member)
        else:
            for ladder in self.ladders:
                given.update(_climb(results, ladder))
        return self._counted(lane, given, len(found), results.decided)

    def _merged(self, lane: Lane, deltas: Sequence[Combinations]) -> dict[str, Answer]:
        """What the joins of all parts give, to each member by a router, and merged."""
        pieces: dict[str, list[Answer]] = {member.name: [] for member in self.members}
        decided = 0
        for choice, found in zip(self.choices, deltas, strict=True):
            results = in_order(lane, self.rows, self.lineages, found, ())
            for member in choice.members:
                pieces[member.name].append(table_of(results, member, within(results, member)))
            decided += results.decided
        given = {name: merged(answers) for name, answers in pieces.items()}
        return self._counted(lane, given, sum(map(len, deltas)), decided)

    def _counted(self, lane: Lane, given: dict[str, Answer], found: int, decided: int) -> dict[str, Answer]:
        rows_out = sum(len(answer.times) for answer in given.values())
        lane.count(f"route {self.chain}", Counters(predicates=decided))
        lane.count(f"union {self.chain}", Counters(rows_in=found, rows_out=rows_out))
        return given

    @property
    def operators(self) -> tuple[str, ...]:
        """The ids that its counters bear."""
        return (f"route {self.chain}", f"union {self.chain}")

    def _nothing(self, lane: Lane, found: Combinations) -> dict[str, Answer]:
        """No rows for anybody; members of one select list get one table."""
        empty: dict[str, Answer] = {}
        for member in self.members:
            if member.outputs not in empty:
                empty[member.outputs] = member.outlet.emit(lane, (found,))
        return {member.name: empty[member.outputs] for member in self.members}

    def _sees_all(self, lane: Lane, member: Member, found: Combinations) -> bool:
        return Results(lane, self.rows, self.lineages, found).seen_by(member) is None


def ladders(members: Sequence[Member]) -> list[Ladder]:
    """The members by filter, each set of windows a ladder where they are nested, else several."""
    by_filter: dict[tuple[tuple[str, int], ...], dict[tuple[tuple[str, int], ...], list[Member]]] = {}
    for member in members:
        bits, sizes = tuple(sorted(member.want.bits.items())), tuple(sorted(member.want.sizes.items()))
        by_filter.setdefault(bits, {}).setdefault(sizes, []).append(member)
    found = []
    for bits, by_sizes in by_filter.items():
        waiting = sorted(by_sizes, key=lambda sizes: [size for _, size in sizes])
        while waiting:
            rungs = [waiting.pop(0)]
            for sizes in list(waiting):
                if all(a <= b for (_, a), (_, b) in zip(rungs[-1], sizes, strict=True)):
                    rungs.append(sizes)
                    waiting.remove(sizes)
            found.append(Ladder(dict(bits), tuple(map(dict, rungs)), tuple(tuple(by_sizes[r]) for r in rungs)))
    return found


def _climb(results: Results, ladder: Ladder) -> dict[str, Answer]:
    """The answers of a ladder's members: the results up to each rung."""
    levels, passed = results.levels(ladder.sizes), results.passed(ladder.bits)
    here = np.flatnonzero(levels < len(ladder.rungs) if passed is None else passed & (levels < len(ladder.rungs)))
    levels = levels[here]
    by_level = np.argsort(levels, kind="stable")
    ends = np.searchsorted(levels[by_level], np.arange(len(ladder.rungs)), "right")
    given: dict[str, Answer] = {}
    tables: dict[str, Answer] = {}
    chosen: Words | None = None
    for rung, end in enumerate(ends.tolist()):
        if chosen is None or len(chosen) != end:
            chosen = _up_to(rung, end, levels, by_level)
            shared: dict[str, Answer] = {}
        for member in ladder.rungs[rung]:
            if member.outputs not in tables:
                tables[member.outputs] = table_of(results, member, here)
            whole = tables[member.outputs]
            seen = results.seen_by(member)
            if seen is not None:
                given[member.name] = taken(whole, chosen[seen[here[chosen]]])
                continue
            if member.outputs not in shared:
                shared[member.outputs] = whole if end == len(here) else taken(whole, chosen)
            given[member.name] = shared[member.outputs]
    return given


def _up_to(rung: int, end: int, levels: Words, by_level: Words) -> Words:
    """The places of the results up to a rung, in order; looking at all is cheaper than sorting many."""
    if end == len(levels):
        return np.arange(end)
    return np.sort(by_level[:end]) if end * FEW < len(levels) else np.flatnonzero(levels <= rung)


def taken(answer: Answer, at: Words) -> Answer:
    """The rows of an answer at these places."""
    return Answer(take(answer.table, at), answer.times[at])
