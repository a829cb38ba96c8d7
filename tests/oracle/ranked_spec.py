"""Queries for the first n rows of each group, as tests say them; the CQL text and the oracle's SQL come from it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.oracle.spec import QuerySpec, duration


@dataclass(frozen=True)
class RankedSpec(QuerySpec):
    """`group_by` is the partition, `order` has (text, descending); `limit` says which ranks by `function` are asked.

    `after` holds of what is ranked, and reads names of the select list. With `nested` all that is asked around a
    subquery, or with `named` around one of WITH.

    With `windowed` the window to group by is the size of the source's window plus a microsecond, written so.
    """

    order: tuple[tuple[str, bool], ...] = ()
    limit: str = "{rank} <= 1"
    function: str = "ROW_NUMBER"
    after: str = ""
    nested: bool = False
    named: bool = False
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
            asked = self.asked("rn", self.after)
            if self.named:
                return f"WITH x AS ({inner}) SELECT * FROM x WHERE {asked}{every}"
            return f"SELECT * FROM ({inner}) AS x WHERE {asked}{every}"
        return f"SELECT {items}, {rank} AS rn FROM {sources}{where} QUALIFY {self.asked(rank, self.written())}{every}"

    def asked(self, rank: str, after: str) -> str:
        """The condition on the rank, and the other one."""
        return self.limit.format(rank=rank) + (f" AND ({after})" if after else "")

    def written(self) -> str:
        """What holds of the ranked rows, over the columns that the select list names."""
        found = self.after
        for item in self.select:
            found = re.sub(rf"\b{item.name}\b", item.text, found)
        return found

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
        """The rank over a partition, in order of `order`; ROW_NUMBER then in that of `ties`."""
        keys = [f"{text} DESC" if down else text for text, down in self.order]
        keys += ties if self.function == "ROW_NUMBER" else ()
        by = f"PARTITION BY {', '.join(partition)} " if partition else ""
        return f"{self.function}() OVER ({by}{'ORDER BY ' + ', '.join(keys) if keys else ''})"
