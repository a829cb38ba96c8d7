"""Routing policies: which SteM a batch visits next.

What an eddy has seen of its SteMs is a table of its lane, so that it outlives steps and restarts. To lose it changes
ways, never answers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from typing_extensions import override

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
