"""Arrival numbers, for queries that count rows: how many rows of each stream have come, in order of event time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from midstream.runtime.watermark import FIRST_TIME, LAST_TIME
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
