"""The streams of a job as one narrow streaming DataFrame.

Spark's micro-batch hands `foreachBatch` rows that have already been computed: what is selected there is not pushed
into the source's scan. So the columns are chosen here, before the query starts. The streams' columns are packed by
type into shared slot columns, so that the union is as wide as its widest stream and not as all of them together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from midstream.admission.refused_rows import REASON
from midstream.spark.job_streams import JobStream, brings_texts, named
from midstream.spark.whole_files import given_name
from midstream.state.base_state import TIME

STREAM = "_stream"
"""The column of the union that holds the number of a row's stream; next to it are `_ts` and the slots."""

ARRIVALS = "_arrivals"
"""How the columns begin that count arrivals."""


def kept_column(group: int) -> str:
    """Name the column that says whether a lane group can use a row."""
    return f"_kept{group}"


def arrivals_columns(counted: Sequence[str]) -> dict[str, str]:
    """Name for each counted stream the column of its arrival numbers, as Spark carries it.

    Names of streams may hold characters that Spark's SQL, and the Python of it, treats as more than a name.

    >>> arrivals_columns(["A", "odd`one"])
    {'A': '_arrivals0', 'odd`one': '_arrivals1'}
    """
    return {name: f"{ARRIVALS}{number}" for number, name in enumerate(counted)}


@dataclass(frozen=True)
class StepLayout:
    """Where the columns of each stream are in the rows of a step.

    `slots` has for each stream the slot of each column that is carried; that of a timestamp which is nothing but the
    event time is `_ts`. `originals` has the slots of values as they arrived, filled where a row could not be read, and
    `reasons` for each stream that may have such rows the slot of the reason.
    """

    streams: tuple[str, ...]
    slots: Mapping[str, Mapping[str, str]]
    originals: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def width(self) -> tuple[str, ...]:
        """The slot columns, in order."""
        used = {slot for of in (*self.slots.values(), *self.originals.values()) for slot in of.values()}
        return tuple(sorted((used | set(self.reasons.values())) - {TIME}, key=lambda slot: int(slot[2:])))

    def covers(self, needs: Mapping[str, frozenset[str]]) -> bool:
        """Return whether the rows carry these columns; columns of answers, which no row brings, may be missing."""
        return all(needed <= self.slots[stream].keys() for stream, needed in needs.items() if stream in self.slots)


@dataclass(frozen=True)
class Intake:
    """The union of a job's streams, as a streaming DataFrame and its layout."""

    frame: DataFrame
    layout: StepLayout


def intake(streams: Sequence[JobStream], needed: Mapping[str, frozenset[str]]) -> Intake:
    """Build the union of the streams, with the columns that are needed and all event times."""
    layout, kinds = _layout(streams, needed)
    frames = [_packed(number, stream, layout, kinds) for number, stream in enumerate(streams)]
    return Intake(reduce(DataFrame.unionAll, frames), layout)


class _Slots:
    """Slot columns, handed out by type: a stream has a slot once, streams share them."""

    def __init__(self) -> None:
        self.kinds: dict[str, T.DataType] = {}
        self._by_kind: dict[str, list[str]] = {}

    def take(self, kind: T.DataType, taken: set[str]) -> str:
        known = self._by_kind.setdefault(kind.simpleString(), [])
        slot = next((one for one in known if one not in taken), None)
        if slot is None:
            slot = f"_c{len(self.kinds)}"
            self.kinds[slot] = kind
            known.append(slot)
        taken.add(slot)
        return slot


def _layout(
    streams: Sequence[JobStream], needed: Mapping[str, frozenset[str]]
) -> tuple[StepLayout, dict[str, T.DataType]]:
    found, slots, originals, reasons = _Slots(), dict[str, dict[str, str]](), dict[str, dict[str, str]](), {}
    for stream in streams:
        name, timestamp, taken = stream.schema.name, stream.schema.timestamp, set[str]()
        own = {c: found.take(stream.kinds[c], taken) for c in sorted(needed[name] - {timestamp})}
        # A row with a damaged text has no event time, and its dead letter shows the time that it came with.
        may_be_dead = any(brings_texts(stream.kinds[c]) for c in needed[name])
        by_itself = stream.has_own_timestamp or may_be_dead or (timestamp in needed[name] and not stream.is_timed)
        own[timestamp] = found.take(stream.kinds[timestamp], taken) if by_itself else TIME
        slots[name] = own
        if stream.is_read:
            originals[name] = {c: found.take(kind, taken) for c, kind in stream.originals.items()}
            reasons[name] = found.take(T.StringType(), taken)
    names = tuple(stream.schema.name for stream in streams)
    return StepLayout(names, slots, originals, reasons), found.kinds


def _packed(number: int, stream: JobStream, layout: StepLayout, kinds: Mapping[str, T.DataType]) -> DataFrame:
    name = stream.schema.name
    own = {column: slot for column, slot in layout.slots[name].items() if slot != TIME}
    filled = {slot: named(column) for column, slot in own.items()}
    filled |= {slot: named(given_name(column)) for column, slot in layout.originals.get(name, {}).items()}
    if name in layout.reasons:
        filled[layout.reasons[name]] = named(REASON)
    slots = [filled.get(slot, F.lit(None)).cast(kinds[slot]).alias(slot) for slot in layout.width]
    return stream.read(sorted(own)).select(F.lit(number).cast("tinyint").alias(STREAM), TIME, *slots)
