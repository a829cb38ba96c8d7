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
import numpy.typing as npt

from midstream.model.counters import Counters
from midstream.model.window import EVENT_TIME
from midstream.operators.need import column, need_of
from midstream.operators.outlet import Answer, with_time
from midstream.sharing.member import Member
from midstream.state.base_state import TIME, count_column
from midstream.state.combinations import Combinations, Words
from midstream.state.keys import stable_sort
from midstream.state.lane import Lane
from midstream.state.lineage import ARRIVED, LINEAGE, Lineage
from midstream.state.rows import take
from midstream.state.specs import RowsSpec

Mask = npt.NDArray[np.bool_]

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

    @cached_property
    def ladders(self) -> tuple[Ladder, ...]:
        """The members by filter, and by nested windows."""
        return tuple(ladders(self.members))

    @cached_property
    def plain(self) -> bool:
        """Whether one member is all there is, so that what the chain finds is its answer."""
        if len(self.members) != 1:
            return False
        want = self.members[0].want
        return need_of([want], frozenset(want.sizes), self.lineages) is None

    def give(self, lane: Lane, found: Combinations) -> dict[str, Answer]:
        """Each member's part of the step's answer, in order of time."""
        if self.plain and (not len(found) or self._sees_all(lane, self.members[0], found)):
            return {member.name: member.outlet.emit(lane, (found,)) for member in self.members}
        if not len(found):
            return self._nothing(lane, found)
        times = found.now[EVENT_TIME]
        if len(times) > 1 and bool((times[1:] < times[:-1]).any()):
            found = found.take(stable_sort(times)[0])
        given: dict[str, Answer] = {}
        results = Results(lane, self.rows, self.lineages, found)
        for ladder in self.ladders:
            given.update(_climb(results, ladder))
        lane.count(
            f"union {self.chain}",
            Counters(rows_in=len(found), rows_out=sum(len(a.times) for a in given.values())),
        )
        return given

    def _nothing(self, lane: Lane, found: Combinations) -> dict[str, Answer]:
        """No rows for anybody; members of one select list get one table."""
        empty: dict[str, Answer] = {}
        for member in self.members:
            if member.outputs not in empty:
                empty[member.outputs] = member.outlet.emit(lane, (found,))
        return {member.name: empty[member.outputs] for member in self.members}

    def _sees_all(self, lane: Lane, member: Member, found: Combinations) -> bool:
        return Results(lane, self.rows, self.lineages, found).seen_by(member) is None


class Results:
    """The results of a step, with what is asked of their rows fetched once."""

    def __init__(
        self, lane: Lane, rows: Mapping[str, RowsSpec], lineages: Mapping[str, Lineage], found: Combinations
    ) -> None:
        self.lane, self.rows, self.lineages, self.found = lane, rows, lineages, found
        self._columns: dict[tuple[str, str], Words] = {}
        self._ages: dict[str, Words] = {}

    def column(self, label: str, name: str) -> Words:
        """An internal column of a source's rows, by result."""
        if (label, name) not in self._columns:
            self._columns[label, name] = column(self.lane, self.rows[label], name, self.found)
        return self._columns[label, name]

    def passed(self, bits: Mapping[str, int]) -> Mask | None:
        """The results whose rows pass these filters; None for all of them."""
        mask: Mask | None = None
        for label, bit in bits.items():
            if len(self.lineages[label].filters) > 1:
                here = (self.column(label, LINEAGE) >> bit) & 1 != 0
                mask = here if mask is None else mask & here
        return None if mask is None or bool(mask.all()) else mask

    def age(self, label: str) -> Words:
        """How old the row of a source is when the last row of each result has come, in the units of its window."""
        if label not in self._ages:
            lineage = self.lineages[label]
            name = TIME if lineage.clock == EVENT_TIME else count_column(lineage.stream)
            past = self.found.now[lineage.clock] - self.column(label, name)
            self._ages[label] = past if lineage.kind == "range" else past + 1
        return self._ages[label]

    def levels(self, sizes: Sequence[Mapping[str, int]]) -> Words:
        """The first of nested windows that each result is within, by its place; the number of windows if none."""
        found: Words | None = None
        for label in sizes[0]:
            ends = np.array([size[label] for size in sizes], np.int64)
            here = np.searchsorted(ends, self.age(label), "left")
            found = here if found is None else np.maximum(found, here)
        assert found is not None
        return found

    def seen_by(self, member: Member) -> Mask | None:
        """The results of rows that a member sees; None for all."""
        if member.sees == "all" or (member.past is not None and int(self.found.now[EVENT_TIME].min()) >= member.past):
            return None
        mask: Mask | None = None
        for label in self.found.labels:
            if isinstance(member.sees, int):
                here = self.column(label, TIME) >= member.sees
            else:
                here = self.column(label, ARRIVED) >= member.joined
            if not here.all():
                mask = here if mask is None else mask & here
        return mask


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
                tables[member.outputs] = _table(results, member, here)
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


def _table(results: Results, member: Member, here: Words) -> Answer:
    """A select list over the results at these places."""
    found = results.found.take(here)
    times, outlet = found.now[EVENT_TIME], member.outlet
    refs = Combinations(found.refs, {}, {})
    read = with_time(results.lane.reader(results.rows, refs), times)
    return outlet.answer(outlet.values(read, len(found)), times)
