"""Selection push-down: streams partitioned by the filters rows pass, and a join for each set of partitions (Wang §4.2).

Base rows are kept once, as in every scheme; a partition is the rows of one lineage. What the joins keep is theirs
alone: "the state memory B_1 cannot be saved", so a partition is kept once for each join it is in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from typing_extensions import override

from midstream.logical.query import Query
from midstream.model.ids import OperatorId
from midstream.model.window import Window
from midstream.operators.binding import Binding, compile_source
from midstream.operators.need import column
from midstream.operators.source import SourceOperator
from midstream.plan.tree import Join, Leaf, Plan
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator
from midstream.sharing.chain_results import Member
from midstream.state.combinations import Combinations
from midstream.state.lineage import LINEAGE, Lineage, later
from midstream.state.specs import RowsSpec, StateSpec

MOST_JOINS = 64
"""Of a chain whose streams are partitioned; their number doubles with each filter."""


@dataclass(frozen=True)
class PartitionOperator(Operator):
    """The rows of a source that pass these filters and no others, for the widest window of the join's queries."""

    source: SourceOperator
    lineage: Lineage
    word: int
    size: int

    @override
    @cached_property
    def id(self) -> OperatorId:
        return OperatorId("part", f"{partition_text(self.lineage, self.word)} {self.size} {self.source.id}")

    @override
    def children(self) -> tuple[Operator, ...]:
        return (self.source,)

    @override
    def states(self) -> tuple[tuple[Operator, StateSpec], ...]:
        return ()

    @override
    def advance(self, lane: Lane) -> Combinations:
        return self._chosen(lane, self.source.delta(lane))

    @override
    def content(self, lane: Lane) -> Combinations:
        return self._chosen(lane, self.source.content(lane))

    @override
    def describe(self) -> str:
        passed = [f.text or "all rows" for f in self.lineage.filters if f.mask & self.word]
        return f"part of {self.source.spec.label} that passes {', '.join(passed)} for {self.size}"

    def _chosen(self, lane: Lane, rows: Combinations) -> Combinations:
        every = sum(f.mask for f in self.lineage.filters)
        words = column(lane, self.source.spec, LINEAGE, rows) & every
        chosen = rows.take(words == self.word)
        clock = self.lineage.clock
        size = self.size if self.lineage.kind == "range" else self.size - 1
        here = chosen.valid_from[clock]
        # No longer than the base rows themselves, of which older ones may be gone for a window that grew.
        ends = np.minimum(later(here, size), chosen.valid_to[clock])
        return Combinations(chosen.refs, chosen.valid_from, {**chosen.valid_to, clock: ends})


@dataclass(frozen=True)
class PartitionBinding(Binding):
    """How the join of one set of partitions is compiled: over the shared base rows, with states of its own."""

    base: Binding | None = None
    words: Mapping[str, int] | None = None

    @override
    def rows(self) -> Mapping[str, RowsSpec]:
        assert self.base is not None
        return self.base.rows()

    @override
    def leaf(self, label: str) -> Operator:
        assert self.base is not None and self.words is not None
        source = compile_source(self.base, label)
        window = self.query.source(label).window
        assert window is not None
        lineage = self.base.lineages[label]
        return PartitionOperator(self.signature((label,)), self.rows(), source, lineage, self.words[label], window.size)


@dataclass(frozen=True)
class PartitionJoin:
    """A join of one partition of each source, by its lineage, and the members whose filters all of them pass."""

    words: Mapping[str, int]
    members: tuple[Member, ...]

    def binding(self, base: Binding) -> PartitionBinding:
        """Return the binding by which the join is compiled."""
        parts = ((a, base.lineages[a], word) for a, word in sorted(self.words.items()))
        scope = "; ".join(f"{a}@{lineage.since} {partition_text(lineage, word)}" for a, lineage, word in parts)
        return PartitionBinding(
            self.query(base.query), f"{base.scope} {scope}", base.columns, base.inputs, base=base, words=self.words
        )

    def query(self, representative: Query) -> Query:
        """Return the join with the widest windows among its members."""
        widest = {a: max(m.demands[a].size for m in self.members) for a in self.words}
        sources = (
            replace(s, window=s.window and Window(s.window.kind, widest[s.alias])) for s in representative.sources
        )
        return replace(representative, sources=tuple(sources))


def partition_text(lineage: Lineage, word: int) -> str:
    """Describe what tells a partition from others: filters passed or failed, and since when they are tested."""
    tests = ((f"{{{f.text}}}@{f.since}", "passes" if f.mask & word else "fails") for f in lineage.filters)
    return ", ".join(f"{how} {text}" for text, how in sorted(tests))


def partition_joins(members: Sequence[Member], lineages: Mapping[str, Lineage]) -> tuple[PartitionJoin, ...]:
    """Build a join for each set of partitions that some member reads."""
    found = []
    for words in product(*(tuple(partitions_of(lineage)) for lineage in lineages.values())):
        chosen = dict(zip(lineages, words, strict=True))
        readers = tuple(
            m for m in members if all(chosen[a] >> lineages[a].bit(d.filter) & 1 for a, d in m.demands.items())
        )
        if readers:
            found.append(PartitionJoin(chosen, readers))
    return tuple(found)


def partitions_of(lineage: Lineage) -> Iterator[int]:
    """Enumerate the lineages that a row may have: the filter that all rows pass, with any others.

    Rows from before a filter that is for future rows only do not pass it, even if all others do; none are from before
    the filter for which rows were first kept.
    """
    tested = _tested(lineage)
    always = sum(f.mask for f in lineage.filters) - sum(tested)
    for passed in product((False, True), repeat=len(tested)):
        word = always + sum(mask for mask, holds in zip(tested, passed, strict=True) if holds)
        if word:
            yield word


def count_partitions(lineage: Lineage) -> int:
    """Count the partitions that the rows of a source fall into, without listing them."""
    tested = _tested(lineage)
    return (1 << len(tested)) - (len(tested) == len(lineage.filters))


def _tested(lineage: Lineage) -> list[int]:
    # The masks of the filters that some rows pass and some do not.
    return [f.mask for f in lineage.filters if f.conjuncts or (f.future_only and f.since > lineage.since)]


def can_partition(plan: Plan) -> bool:
    """Return whether a plan is a tree of joins, whose leaves can be partitions."""
    return isinstance(plan, Leaf) or (isinstance(plan, Join) and can_partition(plan.left) and can_partition(plan.right))
