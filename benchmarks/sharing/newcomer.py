"""A query added to a running engine of a thousand: the step that takes it beside those around."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks.sharing.embedded import engine_for, timed_push
from benchmarks.sharing.pace import Pace
from benchmarks.sharing.record import Newcomer
from benchmarks.sharing.workload import LONGEST, Feed, Workload, sql

ALLOWED = 1.0
"""Seconds beyond the step."""

CROWD = Workload(1_000, "uniform", "nested")
"""Who is there already."""

NEWCOMERS = {
    "a window between theirs": sql(LONGEST // 2 + 1),
    "a new filter": sql(LONGEST // 3, "A.v > 0.42"),
    "wider than all of them": sql(2 * LONGEST),
}


def newcomers(mode: str, crowd: Workload, pace: Pace) -> Iterator[Newcomer]:
    """Each newcomer in turn, with undisturbed steps before, between and after."""
    engine, feed = engine_for(mode, crowd.sqls()), Feed(pace.rate)
    for seconds in (*pace.history, *[pace.tick] * pace.settle):
        timed_push(engine, feed.next(seconds))
    between = max(2, pace.measured // 2)

    def calm() -> list[float]:
        return [timed_push(engine, feed.next(pace.tick))[0] for _ in range(between)]

    around = calm()
    for number, (what, text) in enumerate(NEWCOMERS.items()):
        begin = time.perf_counter()
        engine.add_query(f"new{number}", text)
        asked = time.perf_counter() - begin
        step, results = timed_push(engine, feed.next(pace.tick))
        if f"new{number}" not in results:
            raise ValueError(f"{what}: the step has no answer for it")
        after = calm()
        yield Newcomer("embedded", mode, crowd.queries, what, asked, step, (*around, *after))
        around = after
