"""What happens in a scenario at a load: rows handed over step by step, to queries that run by some plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

import midstream as ms
from benchmarks.optimizer.load import Load
from benchmarks.optimizer.scenario import Scenario
from benchmarks.plan_change.rows import Rows, generate

LEAD = "q00"
"""The query with the longest window, whose aliases all plans are written in."""


@dataclass(frozen=True)
class Course:
    """A scenario at a load; all contestants are given the same rows in the same steps."""

    scenario: Scenario
    load: Load

    @cached_property
    def rows(self) -> Rows:
        """Every row."""
        return generate(self.scenario, replace(self.load, rate=self.load.rate * self.scenario.scale))

    @property
    def ticks(self) -> int:
        """How many steps there are."""
        return round(self.scenario.length * self.load.window / self.load.tick)

    def steps(self, since: float = 0.0) -> Iterator[dict[str, pa.Table]]:
        """What comes in each step, from a moment on."""
        taken = self.rows.arrived(since)
        for number in range(int(since / self.load.tick), self.ticks):
            arrived = self.rows.arrived((number + 1) * self.load.tick)
            yield self.rows.between(taken, arrived)
            taken = arrived

    @property
    def sqls(self) -> dict[str, str]:
        """The queries by name."""
        return self.scenario.sqls(self.load.window)

    @property
    def idle_timeout(self) -> int:
        """A stream that is silent for so many microseconds holds nobody up.

        It is not taken to be silent because the files of another one, of the same step, were found first: on Spark each
        is put in place by itself, and rows of a stream that was left out would come too late.
        """
        return round(max(self.load.window, 2 * self.load.tick) * 1e6)

    def engine(self, plan: str | None) -> ms.Engine:
        """An engine with the queries, which nobody looks after."""
        engine = ms.Engine()
        for stream, table in self.rows.tables.items():
            engine.create_stream(stream, table.schema, timestamp="ts", idle_timeout=self.idle_timeout)
        for name, sql in self.sqls.items():
            engine.add_query(name, sql, plan=plan)
        engine.optimize(mode="off")
        return engine
