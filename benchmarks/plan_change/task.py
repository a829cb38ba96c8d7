"""One run: a contestant on a scenario at a load."""

from __future__ import annotations

from dataclasses import dataclass

import midstream as ms
from benchmarks.plan_change.contestants import Contestant
from benchmarks.plan_change.load import Load
from benchmarks.plan_change.measures import change_of
from benchmarks.plan_change.rows import Counts, Rows
from benchmarks.plan_change.scenario import Scenario

QUERY = "q"
"""What the query is called in every run."""

EPILOGUE = 3
"""Steps after the clock has stopped."""


@dataclass(frozen=True)
class Task:
    """What to run; `rows` are the scenario's at this load."""

    scenario: Scenario
    load: Load
    rows: Rows
    contestant: Contestant

    @property
    def sql(self) -> str:
        """The query."""
        return self.scenario.sql(self.load.window)

    @property
    def start(self) -> str:
        """The plan to start with."""
        return self.contestant.plans(self.scenario)[0]

    @property
    def changes(self) -> tuple[tuple[float, str], ...]:
        """When to change, in seconds since the beginning, and to which plan."""
        return tuple((at * self.load.window, plan) for at, plan in self.contestant.plans(self.scenario)[1])

    @property
    def begin(self) -> float:
        """From when on rows come by the clock; the same for all contestants."""
        return self.scenario.changes[0].at * self.load.window - self.load.lead

    def history(self) -> list[tuple[float, Counts]]:
        """What came before the clock runs, in pieces: when each was there, and how many rows had come by then."""
        moments = [self.begin * (n + 1) / self.load.pieces for n in range(self.load.pieces)]
        return [(moment, self.rows.arrived(moment)) for moment in moments]

    @property
    def end(self) -> Counts:
        """The rows that come by the clock: those up to the end of the change."""
        return self.rows.arrived(change_of(self.scenario, self.load)[1])

    def epilogue(self) -> list[Counts]:
        """What comes after that, in pieces without waiting, so that what has become old is known to be old."""
        first, last = change_of(self.scenario, self.load)[1], self.scenario.length * self.load.window
        moments = [first + (last - first) * part / EPILOGUE for part in range(1, EPILOGUE)]
        return [*map(self.rows.arrived, moments), self.rows.total()]

    def refusal(self) -> str | None:
        """Why the contestant cannot carry this query to its first plan, or None if it can; asked without any rows."""
        if not (self.contestant.is_strategy and self.changes):
            return None
        engine = ms.Engine()
        try:
            self.declare(engine)
            engine.migrate(QUERY, self.changes[0][1], strategy=self.contestant.strategy, **self.contestant.options)
        except ms.MidstreamError as error:
            return str(error)
        return None

    def declare(self, engine: ms.Engine, plan: str | None = None) -> None:
        """Give an engine the streams and the query."""
        for stream, table in self.rows.tables.items():
            engine.create_stream(stream, table.schema, timestamp="ts")
        engine.add_query(QUERY, self.sql, plan=plan or self.start)
