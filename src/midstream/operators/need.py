"""What queries that share a plan need of its joins: how far back they probe, and which of their output is kept.

A base row is kept for the widest window among the queries whose filters it passes, so a combination may be kept that no
query selects: its rows pass the filters of different queries, or are kept for other plans. Where that can be, a join
keeps of its output what some query of the plan selects, for as long as that query's windows say, so that states above
it hold no row too many (Wang Theorem 6).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from midstream.model.sharing import Demands
from midstream.model.window import EVENT_TIME, FOREVER, Clock
from midstream.runtime.lane import Lane
from midstream.state.base_state import clock_column
from midstream.state.combinations import Combinations, Words
from midstream.state.join_state import born_in
from midstream.state.lineage import BEFORE, LINEAGE, Lineage, later
from midstream.state.sorted_run import SortedRun
from midstream.state.specs import RowsSpec


@dataclass(frozen=True)
class Need:
    """The demands of the queries above a join on its sources, none covered by another."""

    demands: tuple[Demands, ...]
    lineages: Mapping[str, Lineage]

    @cached_property
    def widest(self) -> int | None:
        """The widest window of all, in event time; None where windows count rows."""
        if any(lineage.kind != "range" for lineage in self.lineages.values()):
            return None
        return max(one.size for demands in self.demands for one in demands.values())

    def classes(self, labels: Sequence[str], older: bool) -> tuple[Sequence[ProbeClass], Sequence[int]]:
        """Return how far queries probe from combinations of some sources, and their reaches, ascending.

        `older`: what is probed is no younger than the combinations.
        """
        key = (tuple(labels), older)
        if key not in self._classes:
            found: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
            for demands in self.demands:
                bits = tuple(self.lineages[a].bit(demands[a].filter) for a in labels)
                reach = max(one.size for a, one in demands.items() if not older or a not in labels)
                # The windows of single rows say nothing about them.
                own = tuple(demands[a].size for a in labels) if len(labels) > 1 else ()
                found.setdefault(bits, set()).add((*own, reach))
            classes = [
                ProbeClass(bits, tuple(own), reach)
                for bits, sizes in sorted(found.items())
                for *own, reach in _widest(sizes)
            ]
            self._classes[key] = classes, sorted({one.reach for one in classes})
        return self._classes[key]

    @cached_property
    def _classes(self) -> dict[tuple[tuple[str, ...], bool], tuple[Sequence[ProbeClass], Sequence[int]]]:
        return {}

    def keep(self, lane: Lane, rows: Mapping[str, RowsSpec], found: Combinations) -> Combinations:
        """The combinations that some query selects, each valid until the last of those queries no longer does."""
        words = {a: column(lane, rows[a], LINEAGE, found) for a in self.lineages}
        times = {a: column(lane, rows[a], clock_column(li.clock), found) for a, li in self.lineages.items()}
        last: dict[Clock, Words] = {clock: np.full(len(found), BEFORE, np.int64) for clock in found.valid_to}
        for demands in self.demands:
            selected = np.ones(len(found), np.bool_)
            for label, one in demands.items():
                selected &= (words[label] >> self.lineages[label].bit(one.filter)) & 1 != 0
            ends = self._ends(demands, times, found)
            for clock in last:
                selected &= found.valid_from[clock] <= ends[clock]
            for clock, end in ends.items():
                last[clock] = np.where(selected, np.maximum(last[clock], end), last[clock])
        # Rows may have been given up earlier than their windows say.
        valid_to = {clock: np.minimum(last[clock], found.valid_to[clock]) for clock in last}
        kept = np.ones(len(found), np.bool_)
        for clock, end in valid_to.items():
            kept &= found.valid_from[clock] <= end
        limited = Combinations(found.refs, found.valid_from, valid_to)
        return limited if kept.all() else limited.take(kept)

    def _ends(self, demands: Demands, times: Mapping[str, Words], found: Combinations) -> dict[Clock, Words]:
        ends = {clock: np.full(len(found), FOREVER, np.int64) for clock in found.valid_to}
        for label, lineage in self.lineages.items():
            size = demands[label].size if lineage.kind == "range" else demands[label].size - 1
            own = later(times[label], size)
            ends[lineage.clock] = np.minimum(ends[lineage.clock], own)
        return ends


@dataclass(frozen=True)
class ProbeClass:
    """Queries whose filters have these bits, by source: with their `windows`, and how far back they probe, in ages."""

    bits: tuple[int, ...]
    windows: tuple[int, ...]
    reach: int


class ProbeRange:
    """The new rows or combinations of one side of a join, by how far back each of them probes the other.

    In the dissertation's chain a row goes on to the next slice only if it passes the filter of a query that reads there
    (Wang §7.4.1), and a pair to those chains above that its filters and windows ask for (Fig. 6.3). In sets: what is
    new probes the runs that are young enough for some query that selects it, and no older ones; filters and windows
    prune probes, not only results.
    """

    def __init__(self, lane: Lane, rows: Mapping[str, RowsSpec], need: Need, run: SortedRun) -> None:
        self.run, self._lane, self._rows, self._need = run, lane, rows, need
        self._born = born_in(run, EVENT_TIME) if len(run) else (0, 0)
        self._reaches: dict[bool, Words] = {}
        self._chosen: dict[tuple[bool, int], SortedRun] = {}

    def probing(self, other: SortedRun) -> Iterator[tuple[SortedRun, SortedRun]]:
        """Select what some query joins with a run of the other side, as far as ages say: parts of both, side by side.

        A run that is searched by a loop is cut where a window ends: each pair costs as much as a cut row.
        """
        if not len(self.run) or not len(other):
            return
        (least, greatest), (first, last) = self._born, born_in(other, EVENT_TIME)
        # Of results with older rows only, the windows on this side are decided within the row or combination.
        older = last <= least
        classes, sizes = self._need.classes(self.run.combinations.labels, older)
        if other.codes is None and older and any(first < least - size <= last for size in sizes):
            places = np.searchsorted(sizes, least - other.combinations.valid_from[EVENT_TIME], "left")
            parts = [other.take(places == place) for place in range(len(sizes))]
        else:
            parts = [other]
        for part in parts:
            if not len(part):
                continue
            first, last = born_in(part, EVENT_TIME)
            age = max(least - last, first - greatest, 0)
            if age <= sizes[0]:
                yield self.run, part
            elif age <= sizes[-1]:
                yield self._within(classes, older, next(size for size in sizes if size >= age)), part

    def _within(self, classes: Sequence[ProbeClass], older: bool, size: int) -> SortedRun:
        if older not in self._reaches:
            self._reaches[older] = self._reach(classes)
        if (older, size) not in self._chosen:
            at = np.flatnonzero(self._reaches[older] >= size)
            codes = None if self.run.codes is None else self.run.codes[at]
            self._chosen[older, size] = SortedRun(codes, self.run.combinations.take(at))
        return self._chosen[older, size]

    def _reach(self, classes: Sequence[ProbeClass]) -> Words:
        found, lane, rows = self.run.combinations, self._lane, self._rows
        words = [column(lane, rows[a], LINEAGE, found) for a in found.labels]
        ages = []
        if len(found.labels) > 1:
            time = found.valid_from[EVENT_TIME]
            ages = [time - column(lane, rows[a], clock_column(EVENT_TIME), found) for a in found.labels]
        reach = np.full(len(found), -1, np.int64)
        for one in classes:
            selected = np.full(len(found), one.reach, np.int64)
            for word, bit in zip(words, one.bits, strict=True):
                selected[(word >> bit) & 1 == 0] = -1
            for age, window in zip(ages, one.windows, strict=False):
                selected[age > window] = -1
            reach = np.maximum(reach, selected)
        return reach


def need_of(demands: Sequence[Demands], labels: frozenset[str], lineages: Mapping[str, Lineage]) -> Need | None:
    """The need over these sources; None where every row is kept for as long as the one query says that covers all."""
    needed = maximal(demands, labels)
    if len(needed) == 1 and all(
        len(lineages[a].filters) == 1 and lineages[a].filters[0].size == needed[0][a].size for a in labels
    ):
        return None
    return Need(needed, {a: lineages[a] for a in sorted(labels)})


def maximal(demands: Iterable[Demands], labels: frozenset[str]) -> tuple[Demands, ...]:
    """The demands on these sources that no other covers, which is one of the same filters and wider windows."""
    by_filters: dict[tuple[str, ...], dict[tuple[int, ...], Demands]] = {}
    ordered = sorted(labels)
    for one in demands:
        filters, sizes = tuple(one[a].filter for a in ordered), tuple(one[a].size for a in ordered)
        by_filters.setdefault(filters, {}).setdefault(sizes, {a: one[a] for a in ordered})
    return tuple(
        by_filters[filters][sizes] for filters in sorted(by_filters) for sizes in sorted(_widest(by_filters[filters]))
    )


def _widest(sizes: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    table = np.array(sorted(sizes), np.int64)
    order = np.lexsort(table.T[::-1])[::-1]
    kept: list[npt.NDArray[np.int64]] = []
    for row in table[order]:
        if not any((other >= row).all() for other in kept):
            kept.append(row)
    return [tuple(map(int, row)) for row in kept]


def demand_text(demands: Sequence[Demands], labels: frozenset[str]) -> str:
    """What queries need of these sources, as a part of the signatures of states."""
    return " or ".join(
        sorted(
            ", ".join(f"{a}[{one[a].size}]{{{one[a].filter}}}" for a in sorted(labels))
            for one in maximal(demands, labels)
        )
    )


def column(lane: Lane, spec: RowsSpec, name: str, found: Combinations) -> Words:
    """An internal column of the rows of one source, for each combination."""
    fetched = lane.rows(spec).fetch(name, found.refs[spec.label])
    return np.asarray(fetched.to_numpy(zero_copy_only=False), np.int64)
