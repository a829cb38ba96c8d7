"""What queries that share a plan want of its combinations.

Base rows live as long as any query wants them, so a combination may live longer than anybody wants it: its rows pass
the filters of different queries, or are kept for other plans. Where that can be, the join keeps of its output what some
query of the plan wants, for as long as it does, so that states above it hold no row too many (Wang Theorem 6).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from midstream.model.window import EVENT_TIME, FOREVER
from midstream.runtime.lane import Lane
from midstream.state.base_state import TIME, count_column
from midstream.state.combinations import Combinations, Words
from midstream.state.lineage import BEFORE, LINEAGE, Lineage, later
from midstream.state.specs import RowsSpec


@dataclass(frozen=True)
class Want:
    """A query's filter (by its bit) and window on each source."""

    bits: Mapping[str, int]
    sizes: Mapping[str, int]

    def within(self, labels: Iterable[str]) -> Want:
        """The want of these sources only."""
        return Want({a: self.bits[a] for a in labels}, {a: self.sizes[a] for a in labels})


@dataclass(frozen=True)
class Need:
    """The wants of the queries above a join, none covered by another, over the join's sources."""

    wants: tuple[Want, ...]
    lineages: Mapping[str, Lineage]

    @cached_property
    def reach(self) -> int | None:
        """The widest window of all, in event time; None where windows count rows."""
        if any(lineage.kind != "range" for lineage in self.lineages.values()):
            return None
        return max(size for want in self.wants for size in want.sizes.values())

    def steps(self, label: str) -> tuple[tuple[int, int], ...]:
        """For each filter on a source, by its bit, the widest window of the queries that put it."""
        widest: dict[int, int] = {}
        for want in self.wants:
            bit = want.bits[label]
            widest[bit] = max(widest.get(bit, 0), *want.sizes.values())
        return tuple(sorted(widest.items()))

    def keep(self, lane: Lane, rows: Mapping[str, RowsSpec], found: Combinations) -> Combinations:
        """The combinations that somebody wants, each living as long as the last who does."""
        marks = {a: column(lane, rows[a], LINEAGE, found) for a in self.lineages}
        times = {a: column(lane, rows[a], _clock_column(li), found) for a, li in self.lineages.items()}
        best: dict[str, Words] = {clock: np.full(len(found), BEFORE, np.int64) for clock in found.valid_to}
        for want in self.wants:
            held = np.ones(len(found), np.bool_)
            for label, bit in want.bits.items():
                held &= (marks[label] >> bit) & 1 != 0
            ends = self._ends(want, times, found)
            for clock in best:
                held &= found.valid_from[clock] <= ends[clock]
            for clock, end in ends.items():
                best[clock] = np.where(held, np.maximum(best[clock], end), best[clock])
        # Rows may have been given up earlier than their windows say.
        until = {clock: np.minimum(best[clock], found.valid_to[clock]) for clock in best}
        kept = np.ones(len(found), np.bool_)
        for clock, end in until.items():
            kept &= found.valid_from[clock] <= end
        wanted = Combinations(found.refs, found.valid_from, until)
        return wanted if kept.all() else wanted.take(kept)

    def _ends(self, want: Want, times: Mapping[str, Words], found: Combinations) -> dict[str, Words]:
        ends = {clock: np.full(len(found), FOREVER, np.int64) for clock in found.valid_to}
        for label, lineage in self.lineages.items():
            reach = want.sizes[label] if lineage.kind == "range" else want.sizes[label] - 1
            here = times[label]
            own = later(here, reach)
            ends[lineage.clock] = np.minimum(ends[lineage.clock], own)
        return ends


def need_of(wants: Sequence[Want], labels: frozenset[str], lineages: Mapping[str, Lineage]) -> Need | None:
    """The need over these sources; None where every row lives as long as the one want that covers all others says."""
    maximal = greatest(want.within(sorted(labels)) for want in wants)
    if len(maximal) == 1 and all(
        len(lineages[a].filters) == 1 and lineages[a].filters[0].size == maximal[0].sizes[a] for a in labels
    ):
        return None
    return Need(maximal, {a: lineages[a] for a in sorted(labels)})


def greatest(wants: Iterable[Want]) -> tuple[Want, ...]:
    """The wants that no other covers, in a fixed order."""
    by_bits: dict[tuple[tuple[str, int], ...], set[tuple[tuple[str, int], ...]]] = {}
    for want in wants:
        by_bits.setdefault(tuple(sorted(want.bits.items())), set()).add(tuple(sorted(want.sizes.items())))
    found = []
    for bits in sorted(by_bits):
        for sizes in sorted(_maximal(by_bits[bits])):
            found.append(Want(dict(bits), dict(sizes)))
    return tuple(found)


def _maximal(sizes: set[tuple[tuple[str, int], ...]]) -> list[tuple[tuple[str, int], ...]]:
    table = np.array([[size for _, size in one] for one in sorted(sizes)], np.int64)
    order = np.lexsort(table.T[::-1])[::-1]
    kept: list[npt.NDArray[np.int64]] = []
    for row in table[order]:
        if not any((other >= row).all() for other in kept):
            kept.append(row)
    labels = [label for label, _ in next(iter(sizes))]
    return [tuple(zip(labels, map(int, row), strict=True)) for row in kept]


def wanted_text(wants: Sequence[Want], labels: frozenset[str], lineages: Mapping[str, Lineage]) -> str:
    """What is wanted of these sources, as signatures tell states apart by it."""
    texts = {a: {f.bit: f.text() for f in lineages[a].filters} for a in labels}
    return " or ".join(
        sorted(
            ", ".join(f"{a}[{want.sizes[a]}]{{{texts[a][want.bits[a]]}}}" for a in sorted(labels))
            for want in greatest(w.within(sorted(labels)) for w in wants)
        )
    )


def column(lane: Lane, spec: RowsSpec, name: str, found: Combinations) -> Words:
    """An internal column of the rows of one source, for each combination."""
    fetched = lane.rows(spec).fetch(name, found.refs[spec.label])
    return np.asarray(fetched.to_numpy(zero_copy_only=False), np.int64)


def _clock_column(lineage: Lineage) -> str:
    return TIME if lineage.clock == EVENT_TIME else count_column(lineage.stream)
