"""The eddy over SteMs (CACQ: JISC §3.1).

No tree and no intermediate state: a SteM holds the rows of each source, and whatever joins comes back to the eddy,
which routes it on until every SteM has been visited. Each row carries the bitmap of the SteMs it has been joined with.
Rows of one origin and one bitmap are a batch; the eddy decides once for so many of them, and counts a hop for each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from typing_extensions import override

from midstream.model.counters import Counters
from midstream.model.errors import CheckpointError
from midstream.model.ids import OperatorId, StateId, StateKind
from midstream.operators.eddy.stem import Stem
from midstream.operators.match import keyed, match
from midstream.runtime.distribution import Distribution
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator, View
from midstream.state.combinations import Combinations, concatenate, empty
from midstream.state.sorted_run import SortedRun
from midstream.state.specs import StateSpec

Numbers = npt.NDArray[np.float64]

HALF_LIFE = 10_000
"""After so many rows what was seen before them counts half, so that an eddy follows a change of its streams."""


@dataclass(frozen=True)
class Sightings:
    """What the SteMs did so far, by their place: rows consumed and produced, pairs compared. Counted up in place."""

    labels: tuple[str, ...]
    consumed: Numbers
    produced: Numbers
    comparisons: Numbers

    @staticmethod
    def load(labels: tuple[str, ...], table: pa.RecordBatch | None, arrived: int) -> Sightings:
        """The sightings that `to_table` wrote, faded by the rows that have arrived since; none without a table."""
        if table is None or tuple(table.column("stem").to_pylist()) != labels:
            return Sightings(labels, *(np.zeros(len(labels)) for _ in range(3)))
        fade = 0.5 ** (arrived / HALF_LIFE)
        consumed, produced, comparisons = (
            np.asarray(table.column(name).to_numpy()) * fade for name in ("consumed", "produced", "comparisons")
        )
        return Sightings(labels, consumed, produced, comparisons)

    def to_table(self) -> pa.RecordBatch:
        """One row for each SteM."""
        numbers = {"consumed": self.consumed, "produced": self.produced, "comparisons": self.comparisons}
        return pa.RecordBatch.from_pydict({"stem": list(self.labels), **{k: pa.array(v) for k, v in numbers.items()}})

    def saw(self, place: int, consumed: int, produced: int, comparisons: int) -> None:
        """A batch has visited a SteM."""
        self.consumed[place] += consumed
        self.produced[place] += produced
        self.comparisons[place] += comparisons


class RoutingPolicy(ABC):
    """A way to choose; `seed` fixes all that chance decides."""

    name: ClassVar[str]

    def __init__(self, seen: Sightings, seed: Sequence[int]) -> None:
        self.seen = seen
        self.chance = np.random.default_rng(list(seed))

    @abstractmethod
    def choose(self, eligible: Sequence[int]) -> int:
        """The place of the SteM to visit, of one or more."""


class Lottery(RoutingPolicy):
    """A SteM gains a ticket for each row it consumes and loses one for each it produces; one is drawn (JISC §3.1).

    Who lets few rows pass is visited early. Each SteM has one ticket more, so that it never goes unheard.
    """

    name: ClassVar[str] = "lottery"

    @override
    def choose(self, eligible: Sequence[int]) -> int:
        places = np.asarray(eligible)
        tickets = np.maximum(self.seen.consumed[places] - self.seen.produced[places], 0.0) + 1.0
        return int(self.chance.choice(places, p=tickets / tickets.sum()))


class Rank(RoutingPolicy):
    """The least (selectivity - 1) / cost first, both as seen so far; a SteM not seen yet counts as the best there is.

    The cost of a visit is the hop and its comparisons.
    """

    name: ClassVar[str] = "rank"

    @override
    def choose(self, eligible: Sequence[int]) -> int:
        places = np.asarray(eligible)
        visits = np.maximum(self.seen.consumed[places], np.finfo(np.float64).tiny)
        selectivity, cost = self.seen.produced[places] / visits, 1.0 + self.seen.comparisons[places] / visits
        return int(places[np.argmin((selectivity - 1.0) / cost)])


POLICIES: dict[str, type[RoutingPolicy]] = {policy.name: policy for policy in (Lottery, Rank)}


BATCH = 1 << 14
"""Rows that are routed by one decision: few enough to learn within a step, enough to work on columns."""

SEED = 2000
"""A constant next to the signature and the step, so that a replay draws the same lots."""


@dataclass(frozen=True)
class EddyOperator(Operator):
    """Joins all sources by ways that the policy chooses, each combination once.

    A row of this step meets the rows before it: all old ones, and those of this step whose source stands before its
    own. So a combination is made from the row whose source stands last among its new ones, whatever the ways are.
    """

    stems: tuple[Stem, ...]
    policy: str

    @override
    @cached_property
    def id(self) -> OperatorId:
        return OperatorId("eddy", f"{self.policy} {self.signature.digest()}")

    @override
    def children(self) -> tuple[Operator, ...]:
        return tuple(stem.source for stem in self.stems)

    @override
    def distribution(self) -> Distribution:
        every = sum(stem.bit for stem in self.stems)
        visits = [stem.join_condition(every & ~stem.bit).distribution() for stem in self.stems]
        return Distribution(tuple(m for d in visits for m in d.meetings), any(d.together for d in visits))

    @override
    def states(self) -> tuple[tuple[Operator, StateSpec], ...]:
        return tuple((stem.source, spec) for stem in self.stems for spec in stem.indexes)

    @override
    def tables(self) -> tuple[StateId, ...]:
        return (self._table,)

    @override
    def advance(self, lane: Lane) -> Combinations:
        arrived = [stem.source.delta(lane) for stem in self.stems]
        rows_in = sum(map(len, arrived))
        lane.count(self.id, Counters(rows_in=rows_in))
        new = {
            spec.id: keyed(lane, self.rows, delta, spec.index, spec.key)
            for stem, delta in zip(self.stems, arrived, strict=True)
            for spec in stem.indexes
        }
        policy, met, found = self._policy(lane, rows_in), 0, []
        for stem, delta in zip(self.stems, arrived, strict=True):
            found += self._route(lane, policy, stem, delta, new, met)
            met |= stem.bit
        for _, spec in self.states():
            lane.join(spec).insert(new[spec.id])
        lane.keep(self._table, policy.seen.to_table())
        return self._together(found)

    @override
    def content(self, lane: Lane) -> Combinations:
        origin = self.stems[0]
        return self._together(self._route(lane, self._policy(lane, 0), origin, origin.source.content(lane), {}, 0))

    @override
    def in_view(self, view: View) -> Self:
        return replace(
            self,
            signature=self.signature.within(view.name),
            stems=tuple(replace(s, indexes=tuple(map(view.state, s.indexes))) for s in self.stems),
        )

    @override
    def describe(self) -> str:
        return f"eddy by {self.policy} over {', '.join(stem.describe() for stem in self.stems)}"

    @property
    def _table(self) -> StateId:
        # Named after the whole join: what one policy or view has seen serves another.
        return StateId("eddy", self.signature.whole().digest(), StateKind.TABLE.value)

    def _policy(self, lane: Lane, arrived: int) -> RoutingPolicy:
        labels = tuple(stem.label for stem in self.stems)
        try:
            table = lane.table(self._table)
        except CheckpointError:
            table = None
        seen = Sightings.load(labels, table, arrived)
        return POLICIES[self.policy](seen, (SEED, int(self.signature.digest(), 16), lane.clock.step))

    def _route(
        self,
        lane: Lane,
        policy: RoutingPolicy,
        origin: Stem,
        start: Combinations,
        new: Mapping[StateId, SortedRun],
        met: int,
    ) -> list[Combinations]:
        batches = {origin.bit: [start]} if len(start) else {}
        for _ in range(len(self.stems) - 1):
            routed: dict[int, list[Combinations]] = {}
            for done, pieces in batches.items():
                for batch in _cut(concatenate(pieces)):
                    place = policy.choose(self._eligible(done))
                    stem = self.stems[place]
                    found = self._visit(lane, policy, place, batch, done, new if stem.bit & met else {})
                    if len(found):
                        routed.setdefault(done | stem.bit, []).append(found)
            batches = routed
        return [piece for pieces in batches.values() for piece in pieces]

    def _eligible(self, done: int) -> list[int]:
        """Return the SteMs not visited yet; cross products come last."""
        waiting = [place for place, stem in enumerate(self.stems) if not stem.bit & done]
        return [place for place in waiting if self.stems[place].tied(done)] or waiting

    def _visit(
        self,
        lane: Lane,
        policy: RoutingPolicy,
        place: int,
        batch: Combinations,
        done: int,
        new: Mapping[StateId, SortedRun],
    ) -> Combinations:
        stem = self.stems[place]
        on = stem.join_condition(done)
        spec = stem.index(on)
        lane.count(self.id, Counters(hops=len(batch)))
        before = lane.counted(self.id).comparisons
        probe = keyed(lane, self.rows, batch, on.index, on.left_key)
        runs = [*lane.join(spec).old, *([new[spec.id]] if spec.id in new else [])]
        found = [match(lane, self.rows, self.id, on, probe, run) for run in runs]
        pieces = [piece for piece in found if len(piece)]
        policy.seen.saw(place, len(batch), sum(map(len, pieces)), lane.counted(self.id).comparisons - before)
        return concatenate(pieces) if pieces else empty((*batch.labels, stem.label), batch.valid_from)

    def _together(self, found: list[Combinations]) -> Combinations:
        first = self.stems[0].source.spec
        return concatenate(found) if found else empty((s.label for s in self.stems), first.clocks)


def _cut(rows: Combinations) -> Iterator[Combinations]:
    for begin in range(0, len(rows), BATCH):
        yield rows.take(slice(begin, begin + BATCH))
