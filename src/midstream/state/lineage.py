"""Lineage: how long a row is kept for the queries whose filters it passes.

Many queries read one base state. A row passes the filters of some of them, evaluated once when it arrives, and lives
as long as the widest window among those (Wang §7.4.1: the lineage k says after which slice a row is removed). Wang's k
is one number, for filters that are evaluated in falling order of window; here it is a word of bits, one for each
distinct filter, so that filters do not have to be nested and a query's final filter is a look at a bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from midstream.expr.expression import Expression
from midstream.model.ids import digest
from midstream.model.sharing import ALWAYS, SourceFilter
from midstream.model.window import EVENT_TIME, FOREVER, Clock
from midstream.state.gather import all_of, greatest

Words = npt.NDArray[np.int64]

LINEAGE = "_lineage"
"""The internal column of a row's bits, int64."""

ARRIVED = "_step"
"""The internal column of the step a row arrived in, int64."""

MOST_FILTERS = 62
"""Distinct filters of one source that a word has bits for."""

BEFORE = -(2**63)
"""The end of a row that passes no filter: before all time."""


def filter_text(conditions: tuple[Expression, ...]) -> str:
    """Format a filter as text: equal texts are one filter.

    >>> filter_text(())
    ''
    """
    return " and ".join(sorted(c.text() for c in conditions))


@dataclass(frozen=True)
class Lineage:
    """The filters on a source, in falling order of window, and the `cuts` between its slices (ages, ascending).

    `conditions` are those of each filter, by its text. The source's rows are kept since step `since`.

    >>> filters = SourceFilter(0, (), 30, since=0), SourceFilter(1, ("A.k > 1",), 10, since=0)
    >>> lineage = Lineage(filters, "A", "range")
    >>> lineage.ends({EVENT_TIME: np.array([100, 100])}, np.array([1, 2]))[EVENT_TIME].tolist()
    [130, 110]
    >>> lineage.bit("A.k > 1")
    1
    """

    filters: tuple[SourceFilter, ...]
    stream: str
    kind: str
    cuts: tuple[int, ...] = ()
    since: int = 0
    conditions: Mapping[str, tuple[Expression, ...]] = field(default_factory=dict, compare=False)

    @cached_property
    def digest(self) -> str:
        """A digest of all that lifetimes depend on: where it changes, they are computed again."""
        texts = (f"{f.bit} {f.text} {f.size} {f.kept_from} {f.since} {f.future_only}" for f in self.filters)
        return digest("|".join(texts))

    def bit(self, text: str) -> int:
        """Return the place of a filter's bit in the rows' lineage."""
        return self._bits[text]

    def marks(self, text: str) -> bool:
        """Return whether a filter has a bit: none has where all rows are kept."""
        return text in self._bits

    @cached_property
    def _bits(self) -> Mapping[str, int]:
        return {one.text: one.bit for one in self.filters}

    def conditions_of(self, one: SourceFilter) -> tuple[Expression, ...]:
        """Return the conditions of a filter's conjuncts; none for the filter that every row passes."""
        return self.conditions[one.text] if one.conjuncts else ()

    @property
    def clock(self) -> Clock:
        """The clock that the source's windows are measured on."""
        return EVENT_TIME if self.kind == "range" else Clock(self.stream)

    @cached_property
    def passed_by_all(self) -> bool:
        """Whether every row that arrives passes every filter."""
        return not any(one.conjuncts for one in self.filters)

    def ends(self, now: Mapping[Clock, Words], bits: Words | None) -> dict[Clock, Words]:
        """Compute the last moment of each row on each clock; of a row that passes no filter, before all time.

        Without `bits` every row passes every filter.
        """
        here = now[self.clock]
        count = len(here)
        ends = {clock: np.full(count, FOREVER, np.int64) for clock in now if clock != self.clock}
        found: Words | None = None
        for one in reversed(self.filters):
            passed = None if bits is None else (bits & one.mask) != 0
            if one.kept_from != ALWAYS and self.kind == "range":
                kept = here >= one.kept_from
                passed = kept if passed is None else passed & kept
            own = later(here, one.size if self.kind == "range" else one.size - 1)
            if passed is None or not count or all_of(passed):
                found = own
            else:
                found = np.where(passed, own, BEFORE if found is None else found)
        ends[self.clock] = np.full(count, BEFORE, np.int64) if found is None else found
        return ends


def later(now: Words, size: int) -> Words:
    """Add `size` to `now`, clipped at FOREVER instead of wrapping."""
    if now.size and greatest(now) > FOREVER - size:
        return np.where(now > FOREVER - size, FOREVER, now + size)
    return now + size
