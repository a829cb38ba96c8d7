"""Which lanes a step's rows go to: Spark computes slots of lane keys, and checks what no query can use.

Every row carries the slot of each group's lane key; `spark/blocks.py` sends it to the lanes. Lanes take turns over the
partitions, so that partitions fill evenly.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql.pandas.functions import arrow_udf

from midstream.language.expression import Column, Expression
from midstream.runtime.lane_key import SLOT_OF_NULL, SLOTS, slots
from midstream.runtime.watermark import StepClock
from midstream.spark.layout import STREAM, StepLayout, arrivals_columns, slot_column
from midstream.spark.prepass import ceiling_of, watermark_of
from midstream.spark.translate import Slots, condition, key
from midstream.state.base_state import TIME
from midstream.step.program import Program


@dataclass(frozen=True)
class Group:
    """A lane group as the exchange sees it: its lanes, the streams it reads, its key (None: one lane for all rows), and
    for each stream the condition that its rows must pass, in SQL.

    Rows that go on to nodes are dealt out `evenly`, to as many lanes as there are tasks.
    """

    name: str
    lanes: int
    streams: frozenset[str]
    keys: Mapping[str, Expression] | None
    filters: Mapping[str, str | None]
    evenly: bool = False


@dataclass(frozen=True)
class Exchange:
    """The way into the lanes of all groups; the same for every step until queries or lanes change."""

    layout: StepLayout
    groups: tuple[Group, ...]
    partitions: int

    @property
    def has_filters(self) -> bool:
        """Whether rows are left out on the way, so that the lanes do not count them."""
        return any(text is not None for group in self.groups for text in group.filters.values())

    def without_filters(self, streams: Collection[str]) -> Exchange:
        """Return an exchange through which all rows of these streams go."""
        kept = [{s: text for s, text in group.filters.items() if s not in streams} for group in self.groups]
        groups = (replace(group, filters=filters) for group, filters in zip(self.groups, kept, strict=True))
        return replace(self, groups=tuple(groups))

    def lanes(self, partition: int) -> list[tuple[int, int]]:
        """List the lanes of a partition, as (group number, lane)."""
        every = [(number, lane) for number, group in enumerate(self.groups) for lane in range(group.lanes)]
        return every[partition :: self.partitions]

    def slotted(self, batch: DataFrame, clock: StepClock, counted: Sequence[str] = ()) -> DataFrame:
        """Add to a batch of the union the slot of each group, which is NULL for rows that no query of it can use.

        The rows carry arrival numbers of the `counted` streams. Slots after those of the last group are for rows of
        streams that no group reads.
        """
        for number, group in enumerate(self.groups):
            if group.keys is not None and self._spark_keys(group) is None:
                batch = batch.withColumn(slot_column(number), self._python_slots(group))
        rest = [f"`{name}`" for name in (STREAM, TIME, *self.layout.width, *arrivals_columns(counted).values())]
        slots = [self._kept_slot(number, group, clock) for number, group in enumerate(self.groups)]
        if not all(any(s in group.streams for group in self.groups) for s in self.layout.streams):
            slots.append(f"pmod(coalesce({TIME}, 0L), {SLOTS}L)")
        return batch.selectExpr(*rest, *(f"CAST({s} AS SMALLINT) AS {slot_column(n)}" for n, s in enumerate(slots)))

    def _kept_slot(self, number: int, group: Group, clock: StepClock) -> str:
        reading = [s for s in self.layout.streams if s in group.streams]
        slot = self._slot(number, group)
        if all(group.filters.get(s) is None for s in reading):
            numbers, every = ", ".join(f"{self._number(s)}Y" for s in reading), len(reading) == len(self.layout.streams)
            return slot if every else f"CASE WHEN {STREAM} IN ({numbers}) THEN {slot} END"
        mark = watermark_of(self.layout.streams, clock.before)
        most = ceiling_of(self.layout.streams, clock.ceilings)
        branches = " ".join(
            f"WHEN {STREAM} = {self._number(s)}Y AND {_kept(group.filters.get(s), mark, most)} THEN {slot}"
            for s in reading
        )
        return f"CASE {branches} END"

    def _slot(self, number: int, group: Group) -> str:
        if group.evenly:
            return _slot_of(TIME)
        if group.keys is None:
            return "0"
        keys = self._spark_keys(group)
        if keys is None:
            return slot_column(number)
        slots = {s: slot_sql(text, spreads_null=len(keys) > 1) for s, text in keys.items()}
        if len(set(slots.values())) == 1:
            return next(iter(slots.values()))
        return f"CASE {STREAM} {' '.join(f'WHEN {self._number(s)}Y THEN {slot}' for s, slot in slots.items())} END"

    def _spark_keys(self, group: Group) -> dict[str, str] | None:
        # By stream; None if one of the keys must be left to Python, and so all.
        assert group.keys is not None
        found = {s: key(e, self._slots_of(s)) for s, e in group.keys.items()}
        known = {s: text for s, text in found.items() if text is not None}
        return known if len(known) == len(found) else None

    def _python_slots(self, group: Group) -> SparkColumn:
        assert group.keys is not None
        keys, layout = dict(group.keys), self.layout
        read = {s: sorted({c.name: c for c in e.columns()}.values(), key=lambda c: c.name) for s, e in keys.items()}
        columns = sorted({layout.slots[s][c.name] for s, own in read.items() for c in own})
        numbers = {s: self._number(s) for s in keys}
        places = {s: {c.name: (columns.index(layout.slots[s][c.name]), c.type) for c in own} for s, own in read.items()}

        def found(stream: pa.Array, times: pa.Array, *values: pa.Array) -> pa.Array:
            return hashed_slots(stream, times, values, keys, numbers, places)

        make: Any = arrow_udf  # Its declared overloads know no function of any number of arrays.
        return cast(SparkColumn, make(found, "smallint")(STREAM, TIME, *columns))

    def _number(self, stream: str) -> int:
        return self.layout.streams.index(stream)

    def _slots_of(self, stream: str) -> Slots:
        return lambda column: self.layout.slots[stream][column.name]


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


def hashed_slots(
    stream: pa.Array,
    times: pa.Array,
    values: Sequence[pa.Array],
    keys: Mapping[str, Expression],
    numbers: Mapping[str, int],
    places: Mapping[str, Mapping[str, tuple[int, pa.DataType]]],
) -> pa.Array:
    """Compute the slots of keys that only the language's own evaluation gives exactly; runs in a Python worker."""
    import numpy as np

    from midstream.spark.unpack import as_declared
    from midstream.step.admission.reading import whole_or_null

    owner = stream.to_numpy(zero_copy_only=False)
    found = np.zeros(len(owner), np.int16)
    for name in keys:
        rows = np.flatnonzero(owner == numbers[name])
        columns = {c: as_declared(values[at].take(pa.array(rows)), kind) for c, (at, kind) in places[name].items()}
        # Rows with damaged texts come to be dead letters, in whichever lane; until then nothing must stumble over them.
        columns = {c: whole_or_null(own) for c, own in columns.items()}
        batch = pa.RecordBatch.from_pydict({**columns, TIME: times.take(pa.array(rows))})
        found[rows] = slots(keys, name, batch)
    return pa.array(found)


def slot_sql(key: str, *, spreads_null: bool) -> str:
    """Write the slot of a key in Spark's SQL, as `slots` has it in Python."""
    return f"CASE WHEN ({key}) IS NULL THEN {_slot_of(TIME) if spreads_null else SLOT_OF_NULL} ELSE {_slot_of(key)} END"


def _slot_of(code: str) -> str:
    return f"pmod(xxhash64({code}), {SLOTS}L)"


def _kept(passing: str | None, watermark: str, ceiling: str) -> str:
    # A row that no query can use is left out, but never a late row or one without a time.
    if passing is None:
        return "TRUE"
    return f"(({passing}) OR {TIME} IS NULL OR {TIME} < {watermark} OR {TIME} > {ceiling})"
