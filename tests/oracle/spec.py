"""What a test says about streams and queries; the CQL text and the oracle's SQL are both rendered from it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import pyarrow as pa

SECOND = 1_000_000
"""In microseconds, the unit of every time and duration here."""

TIME = "_ts"
"""A select item of exactly this text is the time of the result."""


@dataclass(frozen=True)
class StreamSpec:
    """A stream as a test declares it; durations in microseconds."""

    name: str
    schema: pa.Schema
    timestamp: str = "ts"
    lateness: int = 0
    idle_timeout: int | None = None

    @property
    def unit(self) -> str | None:
        """What an integer timestamp counts."""
        return "us" if pa.types.is_integer(self.schema.field(self.timestamp).type) else None


@dataclass(frozen=True)
class SourceSpec:
    """A stream in a query: a window of `range` microseconds or of `rows` rows, or (both None) none at all."""

    alias: str
    stream: str
    range: int | None = None
    rows: int | None = None

    def cql(self, *, window: bool = True) -> str:
        """The source as it stands in FROM."""
        size = ""
        if window and self.range is not None:
            size = f" [RANGE {duration(self.range)}]"
        elif window and self.rows is not None:
            size = f" [ROWS {self.rows}]"
        return f"{self.stream}{size}" + (f" AS {self.alias}" if self.alias != self.stream else "")


@dataclass(frozen=True)
class Item:
    """A column of the answer: SQL text, its name, and whether its value may be off by rounding; `sql` where the oracle
    must write it otherwise than CQL.
    """

    text: str
    name: str = ""
    approximate: bool = False
    sql: str = ""

    def cql(self) -> str:
        """The item as it stands in SELECT."""
        return f"{self.text} AS {self.name}" if self.name else self.text

    @property
    def plain_name(self) -> str:
        """The name before doubled names are told apart: the alias, or that of the column."""
        return self.name or re.sub(r"^\w+\.", "", self.text)


@dataclass(frozen=True)
class Condition:
    """A conjunct of WHERE and the sources it reads; `sql` where the oracle must write it otherwise than CQL."""

    text: str
    aliases: tuple[str, ...]
    sql: str = ""


@dataclass(frozen=True)
class Subtrahend:
    """`EXCEPT ON (columns) source`."""

    source: SourceSpec
    columns: tuple[str, ...]


@dataclass(frozen=True)
class QuerySpec:
    """A query. `window` is the query-level clause and fills in for sources without a window of their own."""

    sources: tuple[SourceSpec, ...]
    select: tuple[Item, ...]
    where: tuple[Condition, ...] = ()
    group_by: tuple[str, ...] = ()
    every: int | None = None
    subtracted: tuple[Subtrahend, ...] = ()
    window: int | None = None
    having: str = ""
    relation: str = ""

    def cql(self) -> str:
        """The text that midstream gets."""
        text = f"SELECT {', '.join(item.cql() for item in self.select)}"
        text += f" FROM {', '.join(source.cql() for source in self.sources)}"
        for part in self.subtracted:
            text += f" EXCEPT ON ({', '.join(part.columns)}) {part.source.cql()}"
        if self.where:
            text += f" WHERE {' AND '.join(f'({c.text})' for c in self.where)}"
        if self.group_by:
            text += f" GROUP BY {', '.join(self.group_by)}"
        if self.having:
            text += f" HAVING {self.having}"
        if self.window is not None:
            text += f" WINDOW {duration(self.window)}"
        if self.every is not None:
            text += f" EVERY {duration(self.every)}"
        return f"{self.relation}({text})" if self.relation else text

    @property
    def all_sources(self) -> tuple[SourceSpec, ...]:
        """The sources of FROM and then those of EXCEPT."""
        return self.sources + tuple(part.source for part in self.subtracted)

    @property
    def aliases(self) -> tuple[str, ...]:
        """The aliases of all sources."""
        return tuple(source.alias for source in self.all_sources)

    @property
    def streams(self) -> frozenset[str]:
        """The streams it reads."""
        return frozenset(source.stream for source in self.all_sources)

    def items(self, streams: tuple[StreamSpec, ...]) -> tuple[Item, ...]:
        """The select list with every `*` written out."""
        columns = {stream.name: stream.schema.names for stream in streams}
        out: list[Item] = []
        for item in self.select:
            if item.text == "*":
                out += [Item(f"{s.alias}.{c}") for s in self.sources for c in columns[s.stream]]
            else:
                out.append(item)
        return tuple(out)


def output_names(items: tuple[Item, ...], *, log: bool) -> tuple[str, ...]:
    """The names of the answer's columns: the second of one name gets `_1`, a change log has `_op` last."""
    names: list[str] = []
    seen: Counter[str] = Counter()
    for item in items:
        name = item.plain_name
        names.append(f"{name}_{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return (*names, "_op") if log else tuple(names)


def duration(microseconds: int) -> str:
    """A duration in CQL.

    >>> duration(2_000_000), duration(1_500_000), duration(7)
    ('2 SECONDS', '1500 MILLISECONDS', '7 MICROSECONDS')
    """
    for unit, size in (("HOURS", 3600 * SECOND), ("SECONDS", SECOND), ("MILLISECONDS", 1000)):
        if microseconds and microseconds % size == 0:
            return f"{microseconds // size} {unit}"
    return f"{microseconds} MICROSECONDS"
