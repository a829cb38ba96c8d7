"""How a join is deployed over nodes: its windows, the nodes, and what the spreadings place rows by.

Rows are placed by age (`even_ages`), by a key (`placement`), or by segments: event time cut into equal lengths, which
is how the replicating spreadings divide streams (Wang §15.1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from midstream.logical.query import Query
from midstream.model.errors import PlanError
from midstream.model.words import span_text
from midstream.plan.key_classes import KeyClass, key_classes
from midstream.ring.columns import EARLIEST, LATEST, Partials, Words
from midstream.ring.slice_table import SliceTable

MOST_NODES = 1024
"""More nodes than this are refused: every hop would send to each of them."""


@dataclass(frozen=True)
class Deployment:
    """A join of the sources of `windows` (RANGE, in microseconds) over so many `nodes`.

    `moments` are the event times of the steps in flight, ascending; the last is that of the newest. `placed_by` names
    the key class that a source's rows are placed by where they are placed by a key. `ages` are, where slices are not of
    equal length, the ages at which each node's slice ends, except for the last. `rings` are the nodes of a source's
    ring from the head on, where they do not follow one another by number, or are not all nodes. `tables` are the state
    slice tables of sources whose rows stay where they came. `master`, `segment` and `copies` are those of the
    replicating spreadings: the source whose rows are kept once, the length of a segment in microseconds, and the copies
    of a row. Rows from before `since` and from after `until`, event times, lie elsewhere: none of them is looked for
    here.

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
            raise PlanError(
                f"the number of nodes cannot be {self.nodes}", place="nodes", remedy=f"use 1 to {MOST_NODES}"
            )
        if list(self.moments) != sorted(self.moments):
            raise PlanError(
                f"the moments {self.moments} do not ascend",
                place="moments",
                remedy="give the moments in ascending order",
            )
        for label, ends in self.ages.items():
            if len(ends) != (slices := len(self.ring(label))) - 1 or list(ends) != sorted(ends):
                raise PlanError(
                    f"{slices} nodes need {slices - 1} ends of slices in ascending order, not {list(ends)}",
                    place=f"source {label}",
                    remedy=f"give {slices - 1} ages in ascending order",
                )
        for label, ring in self.rings.items():
            if not ring or len({*ring} & {*range(self.nodes)}) != len(ring):
                raise PlanError(
                    f"a ring cannot have the nodes {list(ring)}", place=f"source {label}",
                    remedy=f"name at least one node, and each only once, by numbers from 0 to {self.nodes - 1}",
                )  # fmt: skip

    def ring(self, label: str) -> Words:
        """Return the nodes of a source's ring, from the head on."""
        return np.array(self.rings.get(label, range(self.nodes)), np.int64)

    def slice_ends(self, label: str) -> Words:
        """Return the ages at which a source's slices end, except the last, which takes all older rows (Wang §13.3)."""
        if label in self.ages:
            return np.array(self.ages[label], np.int64)
        slices = len(self.ring(label))
        return np.arange(1, slices) * self.windows[label] // slices

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


GRID = 2048
"""So many ages of equal distance the work is summed up at."""


Density = Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]
"""The number of rows of each age, in any unit."""


def even_ages(
    window: int, nodes: int, span: int, cuts: Sequence[float] = (), density: Density | None = None
) -> tuple[int, ...]:
    """Compute the ages, at the end of a step, at which all slices but the last end; rows come steadily, or by density.

    `span` is by how much event time goes on with a step, and the window is in microseconds as well. A step is one
    moment for all its rows. The first of them look for rows that are older by a step, at its end, than the window; and
    what two rows of a step have to do with each other is done once, by one of them, so that rows of the step are met
    half as often as older ones. Slices of equal length would give the tail half a step more than its share, and the
    head half a step less. `cuts` are as for `parts_of`.

    Differs from §13.3, where each tuple is a moment of its own: without a span, slices are of equal length as there.

    >>> even_ages(80, nodes=4, span=0), even_ages(80, nodes=4, span=10)
    ((20, 40, 60), (25, 45, 65))
    >>> even_ages(80, nodes=4, span=0, cuts=(0.125, 0.25, 0.5))
    (10, 20, 40)
    """
    parts = parts_of(cuts, nodes)
    if window <= 0 or (span <= 0 and density is None):
        ends = parts * window if cuts else np.arange(1, nodes) * window // nodes
        return tuple(np.rint(ends).astype(np.int64).tolist())
    ages = np.linspace(0, window + span, GRID + 1)
    met = np.ones(GRID + 1)
    if span > 0:
        probing = np.minimum(span, ages + window) - np.maximum(0, ages - window)
        met = np.where(ages < span, probing / 2, probing)
    rows = met if density is None else density(ages)
    if density is not None and rows.any():
        met = met * rows
    # The middle of each piece represents it: where the step ends, there is a leap.
    work = np.append(0.0, np.cumsum((met[1:] + met[:-1]) / 2))
    ends = np.interp(parts * work[-1], work, ages)
    return tuple(np.rint(ends).astype(np.int64).tolist())


def parts_of(cuts: Sequence[float], slices: int) -> npt.NDArray[np.float64]:
    """Compute the parts of an even cut's work at which slices end; `cuts` are those of uneven work.

    `cuts` are the ends for the number of slices that they were found with. Between them the work is taken to be even.

    >>> parts_of((0.1, 0.2, 0.5), 4).tolist(), parts_of((0.1, 0.2, 0.5), 2).tolist(), parts_of((), 2).tolist()
    ([0.1, 0.2, 0.5], [0.2], [0.5])
    """
    if len(cuts) == slices - 1:
        return np.array(cuts, np.float64)
    return np.interp(np.arange(1, slices) / slices, np.linspace(0, 1, len(cuts) + 2), [0.0, *cuts, 1.0])


def common_key(query: Query) -> KeyClass | None:
    """Find a key class that ties all sources, the first by its text; None where there is none."""
    return next((one for one in key_classes(query) if _sources(one) == set(query.aliases)), None)


def placement(query: Query) -> dict[str, KeyClass]:
    """Choose each source's key class to place it by: one that ties all sources, else that which ties most.

    A source in no equality is left out. Wang's cost model says nothing of this; a class that ties more sources is
    carried by more of the partial results that visit.
    """
    common, classes = common_key(query), key_classes(query)
    found = {}
    for label in query.aliases:
        own = [one for one in classes if label in _sources(one)]
        if own:
            found[label] = common or min(own, key=lambda one: (-len(_sources(one)), one.text()))
    return found


def always_carried(query: Query, orders: Sequence[Sequence[str]]) -> bool:
    """Return whether at every hop of these orders an equality ties the key that places the next source."""
    placed = placement(query)
    return all(
        label in placed and bool(placed[label].within(order[:at]))
        for order in orders
        for at, label in enumerate(order)
        if at
    )


def _sources(key: KeyClass) -> set[str]:
    return {alias for member in key.members for alias in member.aliases()}


def check_segment(deployment: Deployment) -> None:
    """Raise if a segment is shorter than the widest window: rows would be copied to more than their neighbours."""
    widest = max(deployment.windows.values())
    if deployment.segment < max(widest, 1):
        raise PlanError(
            f"a segment of {span_text(deployment.segment)} is shorter than the widest window, {span_text(widest)}",
            place="segment",
            remedy=f"use at least {span_text(max(widest, 1))}",
        )


def segment_bounds(deployment: Deployment, segments: Words) -> tuple[Words, Words]:
    """Compute the first and the last event time of these segments."""
    low = segments * deployment.segment
    return low, low + deployment.segment - 1
