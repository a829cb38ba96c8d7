"""How a join is deployed over nodes: its windows, the nodes, and what the spreadings place rows by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from midstream.model.errors import PlanError
from midstream.ring.columns import EARLIEST, LATEST, Partials, Words
from midstream.ring.slice_table import SliceTable

MOST_NODES = 1024
"""More nodes than this are refused: every hop would send to each of them."""


@dataclass(frozen=True)
class Deployment:
    """A join of the sources of `windows` (RANGE, in microseconds) over so many `nodes`.

    `moments` are the event times of the steps in flight, ascending; the last is that of the newest. `placed_by` names
    the key class that a source's rows are placed by where they are placed by a key. `ages` are, where slices are not
    of equal length, the ages at which each node's slice ends, but for the last. `rings` are the nodes of a source's
    ring from the head on, where they do not follow one another by number. `tables` are the state slice tables of
    sources whose rows stay where they came. `master`, `segment` and `copies` are those of the replicating spreadings:
    the source whose rows are kept once, the length of a segment in microseconds, and the copies of a row. Rows from
    before `since` and from after `until`, event times, lie elsewhere: none of them is looked for here.

    >>> Deployment({"A": 100, "B": 50}, nodes=4).slice_ends("A").tolist()
    [25, 50, 75]
    """

    windows: Mapping[str, int]
    nodes: int
    moments: tuple[int, ...] = (0,)
    placed_by: Mapping[str, str] = field(default_factory=dict)
    ages: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    rings: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    tables: Mapping[str, SliceTable] = field(default_factory=dict)
    master: str = ""
    segment: int = 0
    copies: int = 2
    seed: int = 0
    since: int = EARLIEST
    until: int = LATEST

    def __post_init__(self) -> None:
        if not 1 <= self.nodes <= MOST_NODES:
            raise PlanError(f"{self.nodes} nodes", place="nodes", remedy=f"name 1 to {MOST_NODES}")
        if list(self.moments) != sorted(self.moments):
            raise PlanError(
                f"moments {self.moments}", place="moments", remedy="name those of steps in flight in ascending order"
            )
        for label, ends in self.ages.items():
            if len(ends) != self.nodes - 1 or list(ends) != sorted(ends):
                raise PlanError(
                    f"{len(ends)} ends of slices for {self.nodes} nodes",
                    place=f"source {label}",
                    remedy=f"name {self.nodes - 1} ages in ascending order",
                )
        for label, ring in self.rings.items():
            if sorted(ring) != list(range(self.nodes)):
                raise PlanError(
                    f"a ring of {len(ring)} nodes", place=f"source {label}",
                    remedy=f"name each of 0 to {self.nodes - 1} once",
                )  # fmt: skip

    def ring(self, label: str) -> Words:
        """Return the nodes of a source's ring, from the head on."""
        return np.array(self.rings.get(label, range(self.nodes)), np.int64)

    def slice_ends(self, label: str) -> Words:
        """Return the ages at which a source's slices end, except the last, which takes all older rows (Wang §13.3)."""
        if label in self.ages:
            return np.array(self.ages[label], np.int64)
        return np.arange(1, self.nodes) * self.windows[label] // self.nodes

    def joinable(self, partials: Partials, label: str) -> tuple[Words, Words]:
        """Compute the event times, both inclusive, between which a row of the source meets each partial result.

        A result of time T has every component within its window: T - ts <= W. A row that is older than the partial
        result must not have left its own window yet; one that is newer must find all components in theirs. Where the
        first is later than the second, no row may.
        """
        newest = np.maximum.reduce([*partials.ts.values()])
        valid_to = np.minimum.reduce([ts + self.windows[other] for other, ts in partials.ts.items()])
        low = newest - self.windows[label]
        if self.since == EARLIEST and self.until == LATEST:
            return low, valid_to
        return np.maximum(low, self.since), np.minimum(valid_to, self.until)
