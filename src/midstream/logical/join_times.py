"""The times of rows that joins put together one after the other, and what windows bound the state between them.

The results of one join are the rows of the next. Such a row has a time of its own, when it was known, which may be
later than those of the rows it is made of: one that an outer join has padded comes at the end of its window. But who
meets whom is decided by the times of the rows themselves: so windows between results are as wide as that asks, and
conditions between the rows' own times stand next to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, inf

from midstream.expr.expression import Call, Column, Expression
from midstream.logical.implied_windows import Gaps, closed, gaps_of, with_implied_windows
from midstream.logical.query import BandPredicate, EquiPredicate, Predicate, Source
from midstream.model.schema import StreamSchema


@dataclass(frozen=True)
class JoinTimes:
    """What is known of the rows in the results of a join.

    `present` are the sources that can be read of them, `always` those that are never padded. By source, `late` has the
    most microseconds that a result comes after the row in it; `gaps` say how far rows lie apart where both are there.
    """

    present: tuple[str, ...]
    always: frozenset[str]
    late: Mapping[str, float]
    gaps: Gaps

    @staticmethod
    def of_inner(
        sources: Sequence[Source], predicates: Sequence[Predicate], streams: Mapping[str, StreamSchema]
    ) -> JoinTimes:
        """Return the times of an inner join or of one source alone; they are infinite where a window is missing."""
        aliases = tuple(source.alias for source in sources)
        if len(aliases) == 1:
            return JoinTimes(aliases, frozenset(aliases), {aliases[0]: 0}, {})
        windowed = with_implied_windows(tuple(sources), tuple(predicates), streams)
        late = {source.alias: _size(source) for source in windowed}
        gaps = closed(gaps_of(sources, predicates, streams), aliases, aliases)
        return JoinTimes(aliases, frozenset(aliases), late, gaps)


@dataclass(frozen=True)
class Meeting:
    """How the results of a join meet the rows of further sources, which the conditions and windows tie to them.

    `kind` is that of the join: 'inner' of any number of `sources`, else 'left', 'right', 'full', 'semi' or 'anti' of
    one. `windows` has by alias the sizes that the text gives, of what was joined before too.
    """

    before: JoinTimes
    kind: str
    sources: tuple[Source, ...]
    windows: Mapping[str, float]
    gaps: Gaps

    @staticmethod
    def of(
        before: JoinTimes,
        kind: str,
        sources: Sequence[Source],
        known: Sequence[Source],
        predicates: Sequence[Predicate],
        streams: Mapping[str, StreamSchema],
    ) -> Meeting:
        """The meeting under these conditions; `known` are all sources of the query."""
        aliases = (*before.present, *(source.alias for source in sources))
        together = [source for source in known if source.alias in aliases]
        gaps = gaps_of(together, predicates, streams)
        gaps = {pair: min(gap, before.gaps.get(pair, inf)) for pair, gap in gaps.items()}
        certain = frozenset(aliases[len(before.present) :]) | before.always | _read_surely(predicates)
        windows = {source.alias: _size(source) for source in together if source.window is not None}
        return Meeting(before, kind, tuple(sources), windows, closed(gaps, certain & {*aliases}, aliases))

    def age(self, alias: str) -> float:
        """The most that rows which come may be newer than a row of what was joined before."""
        if alias in self.windows:
            return self.windows[alias]
        return max(0, *(self.gaps[alias, source.alias] for source in self.sources))

    @property
    def window_before(self) -> float:
        """The window that the results of the join before need here."""
        always = [self.age(alias) for alias in self.before.present if alias in self.before.always]
        return min(always) if always else max(self.age(alias) for alias in self.before.present)

    def window(self, alias: str) -> float:
        """The window that a source that joins needs here, for results that come late to meet its rows."""
        back = {
            other: self.before.late[other] + self.windows.get(alias, self.gaps[alias, other])
            for other in self.before.present
        }
        always = [late for other, late in back.items() if other in self.before.always]
        others = (self.gaps[alias, source.alias] for source in self.sources)
        return max(0, self.windows.get(alias, 0), *others, min(always) if always else max(back.values()))

    def times(self) -> JoinTimes:
        """Return the times of the results."""
        new = tuple(source.alias for source in self.sources)
        late: dict[str, float] = {other: max(self.before.late[other], self.age(other)) for other in self.before.present}
        if self.kind in ("semi", "anti"):
            return JoinTimes(self.before.present, self.before.always, late, self.before.gaps)
        late |= {alias: self.window(alias) for alias in new}
        together, own = self.before.always | {*new}, frozenset(new)
        always = {"inner": together, "left": self.before.always, "right": own}.get(self.kind, frozenset())
        gaps = dict(self.before.gaps)
        for one, other in product(late, late):
            if one in new or other in new or self.kind == "inner":
                gaps[one, other] = self.gaps[one, other]
        return JoinTimes((*self.before.present, *new), always, late, gaps)

    def without_window(self) -> str | None:
        """A source whose rows would have to be kept forever."""
        ages = {alias: self.age(alias) for alias in self.before.present}
        ages |= {source.alias: self.window(source.alias) for source in self.sources}
        return next((alias for alias, age in ages.items() if age == inf), None)


def whole(size: float) -> int:
    """A window of whole microseconds that is as wide."""
    return ceil(size)


def _size(source: Source) -> float:
    by_time = source.window is not None and source.window.kind == "range"
    return source.window.size if source.window is not None and by_time else inf


def _read_surely(predicates: Sequence[Predicate]) -> frozenset[str]:
    """Return the sources without whose rows no condition holds. A NULL in a bare column makes a condition unknown."""
    found = set[str]()
    for condition in predicates:
        if isinstance(condition, EquiPredicate | BandPredicate):
            sides = [_inside(side) for side in (condition.left, condition.right)]
            found |= {side.alias for side in sides if isinstance(side, Column)}
    return frozenset(found)


def _inside(side: Expression) -> Expression:
    while isinstance(side, Call) and side.function in ("microseconds", "cast", "try_cast"):
        side = side.arguments[0]
    return side
