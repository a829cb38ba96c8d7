"""Which lanes a step's rows go to, and which rows no query can use, as far as Spark can check that.

`spark/blocks.py` sends rows to the lanes. Lanes take turns over the partitions, so that partitions fill evenly.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from midstream.expr.expression import Column, Expression
from midstream.runtime.watermark import StepClock
from midstream.spark.layout import STREAM, StepLayout, kept_column
from midstream.spark.prepass import ceiling_of, watermark_of
from midstream.spark.translate import condition
from midstream.state.base_state import TIME
from midstream.units.program import Program


@dataclass(frozen=True)
class Group:
    """A lane group as the exchange sees it: its lanes, the streams it reads, its key, and for each stream the condition
    that its rows must pass, in SQL.

    Without a key rows are dealt out by their event times: those that go on to nodes, to as many lanes as there are
    tasks, and else to the one lane there is.
    """

    name: str
    lanes: int
    streams: frozenset[str]
    keys: Mapping[str, Expression] | None
    filters: Mapping[str, str | None]

    @property
    def has_filters(self) -> bool:
        """Whether some rows of its streams are left out on the way."""
        return any(text is not None for text in self.filters.values())


@dataclass(frozen=True)
class Exchange:
    """The way into the lanes of all groups; the same for every step until queries or lanes change."""

    layout: StepLayout
    groups: tuple[Group, ...]
    partitions: int

    @property
    def has_filters(self) -> bool:
        """Whether rows are left out on the way, so that the lanes do not count them."""
        return any(group.has_filters for group in self.groups)

    def without_filters(self, streams: Collection[str]) -> Exchange:
        """Return an exchange through which all rows of these streams go."""
        kept = [{s: text for s, text in group.filters.items() if s not in streams} for group in self.groups]
        groups = (replace(group, filters=filters) for group, filters in zip(self.groups, kept, strict=True))
        return replace(self, groups=tuple(groups))

    def lanes(self, partition: int) -> list[tuple[int, int]]:
        """List the lanes of a partition, as (group number, lane)."""
        every = [(number, lane) for number, group in enumerate(self.groups) for lane in range(group.lanes)]
        return every[partition :: self.partitions]

    def marked(self, batch: DataFrame, clock: StepClock) -> DataFrame:
        """Add to a batch of the union a column for each group that has filters: whether a query of it can use a row."""
        marks = {kept_column(n): self._kept(group, clock) for n, group in enumerate(self.groups) if group.has_filters}
        return batch.withColumns({name: F.expr(text) for name, text in marks.items()}) if marks else batch

    def _kept(self, group: Group, clock: StepClock) -> str:
        mark = watermark_of(self.layout.streams, clock.before)
        most = ceiling_of(self.layout.streams, clock.ceilings)
        return " OR ".join(
            f"({STREAM} = {number}Y AND {_passing(group.filters.get(stream), mark, most)})"
            for number, stream in enumerate(self.layout.streams)
            if stream in group.streams
        )


def row_filters(program: Program, layout: StepLayout) -> dict[str, str | None]:
    """Return for each stream of a program what Spark can check of its selections; None where every row is needed."""
    found: dict[str, list[str | None]] = {}
    for selection in (one for unit in program.units for one in unit.selections()):
        stream, own = selection.stream, selection.conditions

        def slot(column: Column, stream: str = stream) -> str:
            return layout.slots[stream][column.name]

        parts = [text for e in own if (text := condition(e, slot)) is not None]
        checked = None if selection.ordered or not parts else " AND ".join(f"({part})" for part in parts)
        found.setdefault(stream, []).append(checked)
    return {
        stream: None if None in texts else " OR ".join(f"({text})" for text in dict.fromkeys(texts))
        for stream, texts in found.items()
    }


def _passing(passing: str | None, watermark: str, ceiling: str) -> str:
    # A row that no query can use is left out, but never a late row or one without a time.
    if passing is None:
        return "TRUE"
    return f"(({passing}) OR {TIME} IS NULL OR {TIME} < {watermark} OR {TIME} > {ceiling})"
