"""What a run did, moment by moment: all that the measures are computed from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.plan_change.answer import Marks, integers, marks, repeated
from midstream.model.events import Event, MigrationBegun, MigrationEnded


@dataclass(frozen=True)
class Step:
    """A step whose results were out at `at` seconds and which took `seconds`."""

    at: float
    seconds: float
    rows: int
    results: int
    comparisons: int
    state_rows: int


@dataclass(frozen=True)
class Trace:
    """A run: its steps, and of each of its results the mark, its time of output and its delay since it was possible.

    `asked` are the times at which another plan was asked for, `alone` the time from which on the last one ran by
    itself (None if it never did), `extra` the comparisons that the changes cost, `used` the strategies that did it.
    """

    steps: tuple[Step, ...]
    marks: Marks
    out: npt.NDArray[np.float64]
    delays: npt.NDArray[np.float64]
    asked: tuple[float, ...] = ()
    alone: float | None = None
    extra: int = 0
    used: tuple[str, ...] = ()


@dataclass
class Recorder:
    """Keeps what comes out of a run until it is over; computes nothing while the run goes on."""

    steps: list[tuple[float, float, pa.Table, int, int, int, Mapping[str, int]]] = field(default_factory=list)
    asked: list[float] = field(default_factory=list)
    alone: float | None = None
    extra: int = 0
    used: list[str] = field(default_factory=list)

    def keep(
        self, at: float, seconds: float, results: pa.Table, rows: int, comparisons: int, state_rows: int,
        taken: Mapping[str, int],
    ) -> None:  # fmt: skip
        """Keep a step; `taken` counts the rows that had been taken in before the last restart (none: empty)."""
        self.steps.append((at, seconds, results, rows, comparisons, state_rows, taken))

    def migrated(self, events: Iterable[Event], at: Callable[[int], float | None]) -> None:
        """Keep what the events of an engine say of migrations; `at` tells when a step's results were out."""
        for event in events:
            if isinstance(event, MigrationBegun):
                self.used.append(event.strategy)
            elif isinstance(event, MigrationEnded):
                self.extra += event.comparisons
                self.alone = at(event.step) or self.alone

    def trace(self) -> Trace:
        """The run as a value, results that a restart gave a second time left out."""
        steps, found, out, delays = [], [], [], []
        for at, seconds, table, rows, comparisons, state_rows, taken in self.steps:
            if taken:
                table = table.filter(pa.array(~repeated(table, taken)))
            steps.append(Step(at, seconds, rows, table.num_rows, comparisons, state_rows))
            found.append(marks(table))
            out.append(np.full(table.num_rows, at))
            delays.append(at - integers(table, "_ts") / 1e6)
        return Trace(
            tuple(steps), np.concatenate(found), np.concatenate(out), np.concatenate(delays),
            tuple(self.asked), self.alone, self.extra, tuple(self.used),
        )  # fmt: skip
