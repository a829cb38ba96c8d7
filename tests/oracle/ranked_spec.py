"""Queries for the first n rows of each group, as tests say them; the CQL text and the oracle's SQL come from it."""

from __future__ import annotations

from dataclasses import dataclass

from tests.oracle.spec import QuerySpec, duration


@dataclass(frozen=True)
class RankedSpec(QuerySpec):
    """`group_by` is the partition, `order` has (text, descending); with `nested` the rank is asked around a subquery.

    With `windowed` the window to group by is the size of the source's window plus a microsecond, written so.
    """

    order: tuple[tuple[str, bool], ...] = ()
    count: int = 1
    nested: bool = False
    windowed: str = ""

    def cql(self) -> str:
        """The text that midstream gets."""
        items, rank = ", ".join(item.cql() for item in self.select), self.rank(self.partition())
        sources = ", ".join(source.cql(window=not self.windowed) for source in self.sources)
        if self.windowed == "table":
            (source,) = self.sources
            call = f"TABLE(TUMBLE(TABLE {source.stream}, DESCRIPTOR(ts), INTERVAL {self.size()}))"
            sources = f"{call} AS {source.alias}"
        where = f" WHERE {' AND '.join(f'({c.text})' for c in self.where)}" if self.where else ""
        every = "" if self.windowed or self.every is None else f" EVERY {duration(self.every)}"
        if self.nested:
            inner = f"SELECT {items}, {rank} AS rn FROM {sources}{where}"
            return f"SELECT * FROM ({inner}) AS x WHERE rn <= {self.count}{every}"
        return f"SELECT {items}, {rank} AS rn FROM {sources}{where} QUALIFY {rank} <= {self.count}{every}"

    def partition(self) -> tuple[str, ...]:
        """What stands in PARTITION BY."""
        if self.windowed == "table":
            return ("window_start", "window_end", *self.group_by)
        if self.windowed:
            slide = f" INTERVAL {duration(self.every or 0)}," if self.windowed == "HOP" else ""
            return (*self.group_by, f"{self.windowed}({self.sources[0].alias}.ts,{slide} INTERVAL {self.size()})")
        return self.group_by

    def size(self) -> str:
        """The size of the windows to group by."""
        (source,) = self.sources
        return duration((source.range or 0) + 1)

    def rank(self, partition: tuple[str, ...], ties: tuple[str, ...] = ()) -> str:
        """ROW_NUMBER over a partition, in order of `order`, and then of `ties`."""
        keys = [f"{text} DESC" if down else text for text, down in self.order] + list(ties)
        by = f"PARTITION BY {', '.join(partition)} " if partition else ""
        return f"ROW_NUMBER() OVER ({by}{'ORDER BY ' + ', '.join(keys) if keys else ''})"
