"""What queries share: base rows of sources, filters on them, and the chains that run by one plan. Pure values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from midstream.model.codec import EncodedOnce

ALWAYS, NEVER = -(2**63), 2**63 - 1
"""The event times from which on rows are kept that were kept from the beginning, and that are not kept."""


@dataclass(frozen=True)
class Extent:
    """How far back the rows of a source are all kept: from an event time on, those that arrived from a step on.

    `time` is what purging leaves. `step` is when a filter or a column was first asked for: it goes by arrival, because
    a row may arrive after one that is younger. Rows from before `step` are older than the event time `fresh`.
    """

    time: int = ALWAYS
    step: int = 0
    fresh: int = ALWAYS

    @property
    def exact_from(self) -> int:
        """The event time from which every row is kept, whenever it arrived."""
        return max(self.time, self.fresh)

    def within(self, other: Extent) -> Extent:
        """Return what is kept where both extents hold.

        >>> Extent(5, 2, 9).within(Extent(7))
        Extent(time=7, step=2, fresh=9)
        """
        return Extent(max(self.time, other.time), max(self.step, other.step), max(self.fresh, other.fresh))


@dataclass(frozen=True)
class SourceFilter:
    """A filter on a shared source, and the widest window of the queries that have it.

    `bit` is its place in the rows' lineage, `conjuncts` are its conditions as texts, in order; `since` is the step from
    which on rows are tested by it. Every row of the extent `complete` that passes it was kept while it was young
    enough; from the event time `kept_from` on rows are kept for it still, because a window that grew cannot bring back
    what was purged by then. `future_only` says that rows from before that step do not count. Of windows that count
    rows, `complete` is where the last `rows_kept` rows are kept, and `grown` where the last `size` are, for a window
    that has grown since.
    """

    bit: int
    conjuncts: tuple[str, ...]
    size: int
    since: int
    complete: Extent = Extent()
    kept_from: int = ALWAYS
    future_only: bool = False
    rows_kept: int = 0
    grown: Extent = Extent()

    @property
    def mask(self) -> int:
        """The filter's bit as a word."""
        return 1 << self.bit

    @property
    def text(self) -> str:
        """The conditions as one text, which identifies the filter: equal texts are one filter.

        >>> SourceFilter(0, ("A.k > 1", "A.v < 9"), 5, since=0).text
        'A.k > 1 and A.v < 9'
        """
        return " and ".join(self.conjuncts)


@dataclass(frozen=True)
class SharedSource(EncodedOnce):
    """The base rows of a source that queries share: its filters by their text, and since when its columns are kept.

    Rows are kept since step `since`; once no query reads them any more, another source begins with none. Rows whose
    lifetime ended by the event time `purged_to` may be gone, whichever queries read them now.
    """

    stream: str
    kind: str
    since: int
    purged_to: int = ALWAYS
    filters: Mapping[str, SourceFilter] = field(default_factory=dict)
    columns: Mapping[str, Extent] = field(default_factory=dict)

    @cached_property
    def text(self) -> str:
        """The text of all fields; equal texts are of equal sources."""
        return str(self)


@dataclass(frozen=True)
class Demand:
    """What a query reads of a shared source: the rows that pass a filter (by its text) within a window of a size.

    `source` is the name of the shared source, `columns` are those that the query reads.
    """

    source: str
    filter: str
    size: int
    columns: tuple[str, ...] = ()


Demands = Mapping[str, Demand]
"""What one query reads of each of its sources, by label."""


@dataclass(frozen=True)
class Chain(EncodedOnce):
    """Queries that run by one plan over shared states.

    `family` identifies the join conditions, `plan` is in terms of labels, `sources` names the shared sources by label.
    `cuts` are the ages between its slices. It runs since step `since`; where it split from another chain then,
    `split_from` is the plan of that. `former_name` is the name it had as long as the query ran that it is named
    after, until it was renamed in step `renamed_in`.
    """

    family: str
    group: str
    plan: str
    streams: tuple[str, ...]
    sources: Mapping[str, str]
    cuts: tuple[int, ...] = ()
    since: int = 0
    split_from: str = ""
    former_name: str = ""
    renamed_in: int = 0

    @cached_property
    def text(self) -> str:
        """The text of all fields; equal texts are of equal chains."""
        return str(self)
