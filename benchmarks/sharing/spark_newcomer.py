"""A query added to a running job of a thousand on Spark: the step that takes it beside those around."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import midstream as ms
from benchmarks.sharing.newcomer import NEWCOMERS
from benchmarks.sharing.pace import Pace
from benchmarks.sharing.record import Newcomer
from benchmarks.sharing.spark import LANES, SELECTIVITY, put, source
from benchmarks.sharing.workload import STREAMS, Feed, Workload
from midstream.model.events import QueryAdded, StepDone

BETWEEN = 3
"""Undisturbed steps before, between and after the newcomers."""


def newcomers_on_spark(session: SparkSession, crowd: Workload, pace: Pace, patience: float) -> Iterator[Newcomer]:
    """Each newcomer in turn; a step is given its files when the one before is done."""
    with tempfile.TemporaryDirectory(prefix="midstream-sharing-") as name:
        folder = Path(name)
        feed = Feed(pace.rate, SELECTIVITY)
        put(folder / "in", 0, feed.next(pace.history[0]))
        job = ms.Job(session, checkpoint=folder / "checkpoint", lanes=LANES)
        for stream in STREAMS:
            job.stream(stream, source(session, folder / "in", stream), timestamp="ts")
        for query, sql in crowd.sqls().items():
            job.query(query, sql)
        live = Live(
            folder / "in",
            folder / "checkpoint" / "spark",
            feed,
            pace,
            job.start(),
            time.monotonic() + patience,
        )
        try:
            live.await_steps()
            for _ in range(pace.settle):
                live.step()
            around = [live.step() for _ in range(BETWEEN)]
            for number, (what, text) in enumerate(NEWCOMERS.items()):
                begin = time.perf_counter()
                live.run.add_query(f"new{number}", text)
                asked = time.perf_counter() - begin
                step = live.step()
                if not live.has_begun(f"new{number}"):
                    raise ValueError(f"{what}: the step has not taken it")
                after = [live.step() for _ in range(BETWEEN)]
                yield Newcomer("spark", "auto", crowd.queries, what, asked, step, (*around, *after))
                around = after
        finally:
            live.run.stop()


@dataclass
class Live:
    """A job under way, whose rows come when its last step is done; `epochs` has a log of Spark's for each start."""

    folder: Path
    epochs: Path
    feed: Feed
    pace: Pace
    run: Any
    deadline: float
    files: int = 1

    def step(self) -> float:
        """One step more: the seconds from its files being there to Spark's having committed it, sinks and all."""
        tables = self.feed.next(self.pace.tick)
        begin = time.perf_counter()
        put(self.folder, self.files, tables)
        self.files += 1
        self.await_steps()
        return time.perf_counter() - begin

    def await_steps(self) -> None:
        """Wait until all rows that were given have been taken in and committed."""
        while not self._is_done():
            self.run.await_termination(0.01)  # Raises what the job failed with.
            if time.monotonic() > self.deadline:
                raise TimeoutError("the steps take too long")

    def has_begun(self, query: str) -> bool:
        """Whether a step has taken the query."""
        return any(isinstance(event, QueryAdded) and event.query == query for event in self.run.events)

    def _is_done(self) -> bool:
        steps = [event for event in self.run.events if isinstance(event, StepDone)]
        taken = sum(sum(event.rows_in.values()) for event in steps)
        return taken == len(STREAMS) * self.feed.given and any(self.epochs.glob(f"*/commits/{steps[-1].step}"))
