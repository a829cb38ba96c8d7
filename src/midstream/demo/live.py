"""A job that goes on, to be looked at and changed: the flights of 2013 again and again, each time a year later."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from midstream.demo.acts import LATE_IN_THE_HEAT, LATENESS
from midstream.demo.flights import DAY, INSTANT
from midstream.demo.play import QUERY
from midstream.embedded import Engine

ACT = LATE_IN_THE_HEAT
FIRST_DAY, DAYS_A_STEP, DAYS_A_YEAR = 110, 4, 366
"""The day of the year that the first step begins with, late in April; the days that a step brings; and after how many
the year begins again.
"""


def live_engine(streams: Mapping[str, pa.Table], checkpoint: Path) -> Engine:
    """Make the job of the demo's first act before its first step; a person answers the optimizer's proposals."""
    engine = Engine(checkpoint=checkpoint)
    for name in ACT.streams:
        engine.create_stream(name, streams[name].schema, timestamp="ts", lateness=LATENESS)
    engine.add_query(QUERY, ACT.sql, ACT.old_plan)
    engine.optimize(QUERY, mode="ask", review="1 day", horizon="90 days")
    return engine


def steps(streams: Mapping[str, pa.Table]) -> Iterator[dict[str, pa.Table]]:
    """Yield what steps bring, without an end."""
    times = {name: np.asarray(streams[name]["ts"].cast(pa.int64())) for name in ACT.streams}
    begin = min(int(own.min()) for own in times.values())
    year = 0
    while True:
        for day in range(0 if year else FIRST_DAY, DAYS_A_YEAR, DAYS_A_STEP):
            bounds = begin + np.array([day, min(day + DAYS_A_STEP, DAYS_A_YEAR)]) * DAY
            ends = {name: np.searchsorted(times[name], bounds).tolist() for name in ACT.streams}
            yield {name: _later(streams[name], first, end, year) for name, (first, end) in ends.items()}
        year += 1


def _later(table: pa.Table, first: int, end: int, years: int) -> pa.Table:
    part = table.slice(first, end - first)
    at = part.schema.get_field_index("ts")
    moved = np.asarray(part["ts"].cast(pa.int64())) + years * DAYS_A_YEAR * DAY
    return part.set_column(at, part.schema.field(at), pa.array(moved).cast(INSTANT))


def go_on(engine: Engine, streams: Mapping[str, pa.Table], seconds: float) -> None:
    """Do a step every so many seconds, without an end."""
    for tables in steps(streams):
        began = time.monotonic()
        engine.push(tables)
        time.sleep(max(0.0, seconds - (time.monotonic() - began)))
