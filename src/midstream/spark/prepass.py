"""What must be known of a whole batch before its rows are spread: watermarks after it, and arrival numbers.

Costs a Spark job of its own, so only steps with a query that is evaluated at instants or counts rows have one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F

from midstream.runtime.watermark import FIRST_TIME, LAST_TIME, Seen
from midstream.spark.layout import STREAM, arrivals_columns
from midstream.state.base_state import TIME

POSITION = "_position"


def timed(streams: Sequence[str], ceilings: Mapping[str, int]) -> str:
    """Write in SQL whether a row has a usable event time, as `judge` has it. NULL where it has none at all."""
    return f"({TIME} BETWEEN {FIRST_TIME}L AND {ceiling_of(streams, ceilings)})"


def ceiling_of(streams: Sequence[str], ceilings: Mapping[str, int]) -> str:
    """Write in SQL the greatest event time that a row of its stream may have."""
    return _by_stream([ceilings.get(name, LAST_TIME) for name in streams])


def watermark_of(streams: Sequence[str], watermarks: Mapping[str, int]) -> str:
    """Write in SQL the watermark of a row's stream."""
    return _by_stream([max(watermarks[name], FIRST_TIME) for name in streams])


def _by_stream(words: Sequence[int]) -> str:
    # An array is not written into generated code, as a number is: so the next step needs no new compilation.
    return f"get(array({', '.join(f'{word}L' for word in words)}), {STREAM})"


def filtered_tallies(streams: Sequence[str], ceilings: Mapping[str, int]) -> list[SparkColumn]:
    """Build aggregates that cost little, for steps whose rows are filtered.

    They are of each stream the greatest time, and how many rows have a time.
    """
    usable = timed(streams, ceilings)
    own = [f"CASE WHEN {STREAM} = {number}Y AND {usable} THEN {TIME} END" for number in range(len(streams))]
    greatest = [F.expr(f"max({times})").alias(f"greatest{n}") for n, times in enumerate(own)]
    return greatest + [F.expr(f"count({times})").alias(f"timed{n}") for n, times in enumerate(own)]


def seen_before_filters(
    values: Mapping[str, int | None], by_tasks: Mapping[str, Seen], watermarks: Mapping[str, int]
) -> dict[str, Seen]:
    """Read what the aggregates of `filtered_tallies` found.

    `by_tasks` has all late rows and dead letters, but of the others only those that passed the filters.
    """
    found = {}
    for number, (name, known) in enumerate(by_tasks.items()):
        greatest, timed = values[f"greatest{number}"], values[f"timed{number}"] or 0
        entered = greatest is not None and greatest >= watermarks[name]
        found[name] = replace(known, greatest=greatest if entered else None, rows=timed - known.late)
    return found


def tallies(streams: Sequence[str], watermarks: Mapping[str, int], ceilings: Mapping[str, int]) -> list[SparkColumn]:
    """Build aggregates that compute `Seen` of each stream."""
    found, usable = [], timed(streams, ceilings)
    for number in range(len(streams)):
        own, mark = f"{STREAM} = {number}Y", watermark_of(streams, watermarks)
        parts = {
            "greatest": f"max(CASE WHEN {own} AND {usable} AND {TIME} >= {mark} THEN {TIME} END)",
            "rows": f"count(CASE WHEN {own} AND {usable} AND {TIME} >= {mark} THEN 1 END)",
            "late": f"count(CASE WHEN {own} AND {usable} AND {TIME} < {mark} THEN 1 END)",
            "rejected": f"count(CASE WHEN {own} AND coalesce(NOT {usable}, TRUE) THEN 1 END)",
        }
        found += [F.expr(text).alias(f"{part}{number}") for part, text in parts.items()]
    return found


def tallied(streams: Iterable[str], values: Mapping[str, int | None]) -> dict[str, Seen]:
    """Read what the aggregates of `tallies` found."""
    return {
        name: Seen(
            values[f"greatest{n}"], values[f"rows{n}"] or 0, values[f"late{n}"] or 0, values[f"rejected{n}"] or 0
        )
        for n, name in enumerate(streams)
    }


def tally(
    batch: DataFrame, streams: Sequence[str], watermarks: Mapping[str, int], ceilings: Mapping[str, int]
) -> dict[str, Seen]:
    """Count a batch."""
    row = batch.select(*tallies(streams, watermarks, ceilings)).head()
    assert isinstance(row, Row)
    return tallied(streams, row.asDict())


def with_arrival_numbers(
    batch: DataFrame,
    streams: Sequence[str],
    counts: Mapping[str, int],
    watermarks: Mapping[str, int],
    ceilings: Mapping[str, int],
) -> DataFrame:
    """Add to every row how many rows of each counted stream have arrived, itself included.

    Rows arrive in the order (time, stream, position); only admitted ones count. `counts` are the arrivals before the
    batch.
    """
    mark, usable = watermark_of(streams, watermarks), timed(streams, ceilings)
    arrivals = Window.partitionBy(F.lit(0)).orderBy(F.col(TIME).asc_nulls_first(), STREAM, POSITION)
    running = arrivals.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    placed = batch.withColumn(POSITION, F.monotonically_increasing_id())
    columns = arrivals_columns(tuple(counts))
    added = {
        columns[name]: F.count(
            F.expr(f"CASE WHEN {STREAM} = {streams.index(name)}Y AND {usable} AND {TIME} >= {mark} THEN 1 END")
        ).over(running)
        + F.lit(before)
        for name, before in counts.items()
    }
    return placed.withColumns(added).drop(POSITION)
