"""Lineage: how long a row is kept for the queries whose filters it passes.

Many queries read one base state. A row passes the filters of some of them, evaluated once when it arrives, and lives
as long as the widest window among those (Wang §7.4.1: the lineage k says after which slice a row is removed). Wang's k
is one number, for filters that are evaluated in falling order of window; here it is a word of bits, one for each
distinct filter, so that filters need not be nested and a query's final filter is a look at a bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from midstream.language.expression import Expression
from midstream.model.window import EVENT_TIME, FOREVER, row_clock
from midstream.plan.signature import digest

Words = npt.NDArray[np.int64]

LINEAGE = "_lineage"
"""The internal column of a row's bits, int64."""

ARRIVED = "_step"
"""The internal column of the step a row arrived in, int64."""

MOST_FILTERS = 62
"""Distinct filters of one source that a word has bits for."""

BEFORE = -(2**63)
"""When rows ended that no query wants."""


@dataclass(frozen=True)
class Filter:
    """A filter that queries put on a source, and the widest of their windows.

    `since` is the step it was first asked in; `floor` the event time from which on rows are held for it: a window that
    grew cannot bring back what was gone by then. `blind`: of rows from before that step none counts.
    """

    bit: int
    conditions: tuple[Expression, ...]
    size: int
    since: int = 0
    floor: int = BEFORE
    blind: bool = False

    @property
    def mask(self) -> int:
        """The filter's bit as a word."""
        return 1 << self.bit

    def text(self) -> str:
        """The conditions in order, which tell filters apart."""
        return filter_text(self.conditions)


def filter_text(conditions: tuple[Expression, ...]) -> str:
    """The text of a filter: equal texts are one filter.

    >>> filter_text(())
    ''
    """
    return " and ".join(sorted(c.text() for c in conditions))


@dataclass(frozen=True)
class Lineage:
    """The filters on a source, in falling order of window, and the `cuts` between its slices (ages, ascending).

    Its rows have been held since step `founded`.

    >>> lineage = Lineage((Filter(0, (), 30), Filter(1, (), 10)), "A", "range")
    >>> lineage.ends({"ts": np.array([100, 100])}, np.array([1, 2]))["ts"].tolist()
    [130, 110]
    """

    filters: tuple[Filter, ...]
    stream: str
    kind: str
    cuts: tuple[int, ...] = ()
    founded: int = 0

    @cached_property
    def digest(self) -> str:
        """What lifetimes were reckoned by: they change where it changes."""
        told = (f"{f.bit} {f.text()} {f.size} {f.floor} {f.since} {f.blind}" for f in self.filters)
        return digest("|".join(told))

    @property
    def clock(self) -> str:
        """The clock that the source's windows are measured on."""
        return EVENT_TIME if self.kind == "range" else row_clock(self.stream)

    def ends(self, now: Mapping[str, Words], bits: Words) -> dict[str, Words]:
        """The last moment of each row on each clock; one that no query wants any more has passed it long ago."""
        count = len(bits)
        ends = {clock: np.full(count, FOREVER, np.int64) for clock in now if clock != self.clock}
        here = now[self.clock]
        found = np.full(count, BEFORE, np.int64)
        for one in reversed(self.filters):
            held = (bits & one.mask) != 0
            if one.floor != BEFORE and self.kind == "range":
                held &= here >= one.floor
            own = later(here, one.size if self.kind == "range" else one.size - 1)
            found = own if held.all() else np.where(held, own, found)
        ends[self.clock] = found
        return ends


def later(now: Words, size: int) -> Words:
    """`now + size`, held at FOREVER instead of wrapping."""
    if len(now) and int(now.max()) > FOREVER - size:
        return np.where(now > FOREVER - size, FOREVER, now + size)
    return now + size
