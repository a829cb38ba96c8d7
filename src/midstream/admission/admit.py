"""Admission: which rows enter a step, which are late, which cannot be read. Nothing is ever dropped."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from midstream.admission.mixed import with_texts
from midstream.admission.reading import Reading, Way, far_time, read_in, ways_of
from midstream.admission.refused_rows import FILE, PARTITION, dead_letters, late_rows, readable
from midstream.logical.result_time import time_in
from midstream.model.errors import InputError
from midstream.model.frozen import kept_with
from midstream.model.schema import StreamSchema, plain_type, without_runs
from midstream.runtime.watermark import BEGINNING, FIRST_TIME, LAST_TIME, Seen
from midstream.state.base_state import TIME
from midstream.state.gather import extremes
from midstream.state.rows import one_batch

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Judged:
    """Some rows of a stream, classified; `entering` is None where all enter, `late` and `dead` where none is."""

    entering: Mask | None
    late: Mask | None
    dead: Mask | None
    seen: Seen


def judge(times: pa.Array, watermark: int, ceiling: int = LAST_TIME) -> Judged:
    """Classify rows by their event times and the watermark of their stream at the beginning of the step.

    A row without an event time, or with one beyond the `ceiling`, cannot be read; one from before the watermark
    is late; all others enter.

    >>> judge(pa.array([7, None, 9]), 8).entering.tolist()
    [False, False, True]
    """
    dead = None if not times.null_count else times.is_null().to_numpy(zero_copy_only=False)
    least = watermark if watermark > FIRST_TIME else FIRST_TIME
    words = times.to_numpy() if dead is None else times.fill_null(least).to_numpy()
    if dead is None:
        if not words.size:
            return Judged(None, None, None, Seen())
        earliest, latest = extremes(words)
        if earliest >= least and latest <= ceiling:
            return Judged(None, None, None, Seen(latest, words.size))
    far = (words < FIRST_TIME) | (words > ceiling)
    dead, late = far if dead is None else dead | far, (words < least) & ~far
    entering = ~(late | dead)
    entered = words[entering]
    seen = Seen(int(entered.max()) if len(entered) else None, len(entered), int(late.sum()), int(dead.sum()))
    return Judged(entering, late if seen.late else None, dead if seen.rejected else None, seen)


@dataclass(frozen=True)
class Admitted:
    """A table sorted out: rows with `_ts`, late rows with their `_watermark`, dead letters with a `_reason`."""

    rows: pa.RecordBatch
    late: pa.Table
    dead: pa.Table
    seen: Seen


def admit(schema: StreamSchema, table: pa.Table, watermark: int = BEGINNING, ceiling: int = LAST_TIME) -> Admitted:
    """Sort out the rows of a table pushed into a stream.

    Columns are brought to the declared types; a row that cannot be, or whose timestamp is NULL, becomes a dead letter
    in its original form. A missing column is an `InputError`, other columns are ignored.
    """
    form = _form(schema, table.schema)
    if not table.num_rows:
        return nothing_of(schema)
    given = table if form.alone else table.select(schema.columns.names)
    reading = read_in(schema, one_batch(given, f"stream {schema.name}"), form.ways)
    judged = judge(reading.times, watermark, ceiling)
    seen = judged.seen
    if form.partitioned:
        seen = replace(seen, parts=greatest_by_partition(table.column(PARTITION), reading.times, judged.entering))
    read = pa.RecordBatch.from_arrays([*reading.columns.values(), reading.times], names=form.names)
    nothing = nothing_of(schema)
    late = nothing.late
    if judged.late is not None:
        late = late_rows(read.filter(pa.array(judged.late)), watermark, time_in([schema]))
    dead = nothing.dead if judged.dead is None else _dead(table, judged.dead, schema, reading, ceiling)
    return Admitted(read if judged.entering is None else read.filter(pa.array(judged.entering)), late, dead, seen)


def greatest_by_partition(
    partitions: pa.Array | pa.ChunkedArray, times: pa.Array, entering: Mask | None
) -> dict[str, int]:
    """Find the greatest event time of each partition of which rows enter."""
    owners, words = np.asarray(partitions), times
    if entering is not None:
        owners, words = owners[entering], times.filter(pa.array(entering))
    names, places = np.unique(owners, return_inverse=True)
    greatest = np.full(len(names), BEGINNING, np.int64)
    np.maximum.at(greatest, places, np.asarray(words))
    return {str(name): time for name, time in zip(names.tolist(), greatest.tolist(), strict=True)}


@dataclass(frozen=True)
class _Form:
    """The way in which tables of a schema are read, with the `names` of the columns that are read.

    `alone`: the tables have the stream's columns, in its order, and no others. `partitioned`: they have the partition
    of each row.
    """

    given: pa.Schema
    alone: bool
    partitioned: bool
    ways: tuple[Way, ...]
    names: list[str]


def _form(schema: StreamSchema, given: pa.Schema) -> _Form:
    # Found once for as long as a stream is given tables of one schema.
    last: list[_Form] = kept_with(schema, "_form", lambda _: [])
    if not last or not last[0].given.equals(given):
        check_columns(schema, given.names)
        names = schema.columns.names
        ways = ways_of(schema, pa.schema([given.field(name) for name in names]))
        last[:] = [_Form(given, given.names == names, PARTITION in given.names, ways, [*names, TIME])]
    return last[0]


def nothing_of(schema: StreamSchema) -> Admitted:
    """Return what is admitted of a stream that brings no row."""
    return kept_with(schema, "_nothing", _nothing)


def _nothing(schema: StreamSchema) -> Admitted:
    columns = schema.columns.empty_table()
    rows = one_batch(columns, f"stream {schema.name}").append_column(TIME, pa.array([], pa.int64()))
    late = late_rows(rows, 0, time_in([schema]))
    return Admitted(rows, late, dead_letters(columns, []), Seen())


def _dead(table: pa.Table, dead: Mask, schema: StreamSchema, reading: Reading, ceiling: int) -> pa.Table:
    rows, why = readable(_in_plain_types(without_runs(table).filter(pa.array(dead)))), reading.reasons
    times = zip(np.flatnonzero(dead).tolist(), reading.times.filter(pa.array(dead)).to_pylist(), strict=True)
    return dead_letters(rows, [why.get(row) or far_time(schema, time, ceiling) for row, time in times])


def check_columns(schema: StreamSchema, given: list[str]) -> None:
    """Raise unless a table with these columns has each column of a stream, once."""
    if given == schema.columns.names:
        return
    missing = [name for name in schema.columns.names if name not in given]
    if missing:
        raise InputError(
            f"the table pushed into stream {schema.name!r} lacks {', '.join(map(repr, missing))}",
            place=f"stream {schema.name}",
            remedy=f"push tables with the columns {', '.join(schema.columns.names)}",
        )
    doubled = [name for name in schema.columns.names if given.count(name) > 1]
    if doubled:
        raise InputError(
            f"the table pushed into stream {schema.name!r} has {doubled[0]!r} more than once",
            place=f"stream {schema.name}",
            remedy="rename one of the columns",
        )


def _in_plain_types(table: pa.Table) -> pa.Table:
    table = with_texts(table)
    if FILE in table.column_names:
        table = table.set_column(table.column_names.index(FILE), FILE, table.column(FILE).cast(pa.string()))
    return table.cast(pa.schema([field.with_type(plain_type(field.type)) for field in table.schema]))
