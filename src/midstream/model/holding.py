"""What base rows are held for the queries that share them: pure values of the manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ALWAYS = -(2**63)
"""The event time from which on rows are held that were held from the beginning."""


@dataclass(frozen=True)
class Held:
    """A filter on a source: its bit in the rows' lineage and the widest window of the queries that put it.

    `parts` are its conjuncts as texts. It was first asked in step `since`; `complete` is the event time from which on
    every row that passes it was held while it was young enough, `floor` that from which on rows are held for it still.
    `blind` says that rows from before it was asked do not count. Of a window that counts rows, `counted` is how many
    rows have been held all along, however wide it has grown since.
    """

    bit: int
    parts: tuple[str, ...]
    size: int
    since: int
    complete: int = ALWAYS
    floor: int = ALWAYS
    blind: bool = False
    counted: int = 0


@dataclass(frozen=True)
class Holding:
    """The base rows of a source that queries share: by filter text for whom, by column from which event time on.

    They were first held in step `founded`; once nobody wants them any more, another holding begins with nothing. Rows
    that had ended by `bound` may be gone, whoever reads the holding now.
    """

    stream: str
    kind: str
    founded: int
    bound: int = ALWAYS
    filters: Mapping[str, Held] = field(default_factory=dict)
    columns: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Wanted:
    """What a query wants of a source: the holding's name, the filter's text, the size of its window, the columns."""

    holding: str
    filter: str
    size: int
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Chain:
    """Queries that run by one plan over shared states.

    `family` tells what joins by what, `plan` is in terms of labels, `holdings` names the base rows by label. `cuts` are
    the ages between its slices. It was `founded` in that step, by a query that left a chain which ran by the plan
    `origin`, if there is one. `formerly` is the name it had while the query lived that it is named after, until it was
    `renamed` in that step.
    """

    family: str
    group: str
    plan: str
    streams: tuple[str, ...]
    holdings: Mapping[str, str]
    cuts: tuple[int, ...] = ()
    founded: int = 0
    origin: str = ""
    formerly: str = ""
    renamed: int = 0
