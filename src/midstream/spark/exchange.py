"""How a step's rows reach the lanes: tagged, filtered and shuffled in the JVM, once.

Every row carries one integer, its tag: the lane group, the stream and the slot of the lane key. A row that several
groups read is sent to each. Lanes take turns over the partitions, so that partitions fill evenly.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf

from midstream.language.expression import Column, Expression
from midstream.runtime.lane_key import SLOT_OF_NULL, SLOTS, slots
from midstream.runtime.watermark import StepClock
from midstream.spark.file_rows import Dealt
from midstream.spark.layout import STREAM, StepLayout, arrivals_columns
from midstream.spark.prepass import ceiling_of, watermark_of
from midstream.spark.tag import SLOT_SQL, TAG, TagFormat
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
    """The way into the lanes of all groups; the same for every step until queries or lanes change.

    A group number past the last group marks rows of streams that no query reads: they are only counted.
    """

    layout: StepLayout
    groups: tuple[Group, ...]
    partitions: int

    @property
    def tags(self) -> TagFormat:
        """The format of the tags."""
        return TagFormat.of(len(self.layout.streams))

    @property
    def has_filters(self) -> bool:
        """Whether rows are left out before the shuffle, so that they must be counted on the way."""
        return any(text is not None for group in self.groups for text in group.filters.values())

    @property
    def dealt(self) -> tuple[Dealt, ...]:
        """How a task that reads the rows by itself deals them out."""
        return tuple(Dealt(group.lanes, group.streams, group.keys, group.evenly) for group in self.groups)

    @property
    def in_one(self) -> Exchange:
        """The same where one partition does all work: rows that go on to nodes need not be dealt out."""
        groups = tuple(replace(group, lanes=1) if group.evenly else group for group in self.groups)
        return replace(self, groups=groups, partitions=1)

    def without_filters(self, streams: Collection[str]) -> Exchange:
        """Return an exchange through which all rows of these streams go."""
        kept = [{s: text for s, text in group.filters.items() if s not in streams} for group in self.groups]
        groups = (replace(group, filters=filters) for group, filters in zip(self.groups, kept, strict=True))
        return replace(self, groups=tuple(groups))

    def lanes(self, partition: int) -> list[tuple[int, int]]:
        """List the lanes of a partition, as (group number, lane)."""
        every = [(number, lane) for number, group in enumerate(self.groups) for lane in range(group.lanes)]
        return every[partition :: self.partitions]

    def apply(self, batch: DataFrame, clock: StepClock, counted: Sequence[str] = ()) -> DataFrame:
        """Tag a batch of the union and put it in its partitions; it carries arrival numbers of the `counted`
        streams."""
        for number, group in enumerate(self.groups):
            if group.keys is not None and self._spark_keys(group) is None:
                batch = batch.withColumn(_slot_column(number), self._python_slots(group))
        rest = [f"`{name}`" for name in (TIME, *self.layout.width, *arrivals_columns(counted).values())]
        tags = [self._tag(number, group, clock) for number, group in enumerate(self.groups)]
        unread = [s for s in self.layout.streams if not any(s in group.streams for group in self.groups)]
        if unread:
            tags.append(self._case(unread, self.tags.sql(len(self.groups), f"pmod(coalesce({TIME}, 0L), {SLOTS}L)")))
        if len(tags) == 1:
            tagged = batch.selectExpr(f"{tags[0]} AS {TAG}", *rest)
            if self.groups and not self._total():
                tagged = tagged.where(f"{TAG} IS NOT NULL")
        else:
            each = f"explode(filter(array({', '.join(tags)}), tag -> tag IS NOT NULL)) AS {TAG}"
            tagged = batch.selectExpr(each, *rest)
        return tagged.repartitionById(self.partitions, F.expr(self._partition()))

    def _total(self) -> bool:
        # Where there is one group.
        return not self.has_filters and all(any(s in g.streams for g in self.groups) for s in self.layout.streams)

    def _tag(self, number: int, group: Group, clock: StepClock) -> str:
        reading = [s for s in self.layout.streams if s in group.streams]
        packed, mark = self.tags.sql(number, self._slot(number, group)), watermark_of(self.layout.streams, clock.before)
        most = ceiling_of(self.layout.streams, clock.ceilings)
        if all(group.filters.get(s) is None for s in reading):
            return self._case(reading, packed)
        branches = " ".join(
            f"WHEN {STREAM} = {self._number(s)}Y AND {_kept(group.filters.get(s), mark, most)} THEN {packed}"
            for s in reading
        )
        return f"CASE {branches} END"

    def _case(self, reading: Sequence[str], packed: str) -> str:
        if set(reading) == set(self.layout.streams):
            return packed
        numbers = ", ".join(f"{self._number(s)}Y" for s in reading)
        return f"CASE WHEN {STREAM} IN ({numbers}) THEN {packed} END"

    def _slot(self, number: int, group: Group) -> str:
        if group.evenly:
            return _slot_of(TIME)
        if group.keys is None:
            return "0"
        keys = self._spark_keys(group)
        if keys is None:
            return _slot_column(number)
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

    def _partition(self) -> str:
        # The lanes of all groups in a row, dealt out by `repartitionById`'s modulo.
        first, cases = 0, []
        for number, group in enumerate(self.groups):
            lane = f"{first} + ({SLOT_SQL}) % {group.lanes}" if group.lanes > 1 else f"{first}"
            cases.append(f"WHEN {number} THEN {lane}")
            first += group.lanes
        if not cases:
            return SLOT_SQL
        if len(cases) == 1 and all(s in self.groups[0].streams for s in self.layout.streams):
            return cases[0].partition("THEN ")[2]
        return f"CASE {self.tags.group_sql} {' '.join(cases)} ELSE {SLOT_SQL} END"

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


def _slot_column(group: int) -> str:
    return f"_slot{group}"
