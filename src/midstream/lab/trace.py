"""What a run under the virtual processor leaves: its steps, its events, and the questions figures ask of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from midstream.model.events import Event, MigrationBegun, MigrationEnded

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Step:
    """One step: virtual seconds, rows, counters.

    `rows` were taken from the arrivals, with those before all that arrived before `upto`; `queue` arrivals waited when
    it began and were not taken. Results come out at `end`; a result's delay is `end` less its own time T.
    `operator_rows` entered some operator; `work` is the priced sum. State is counted at the end, a state under several
    indexes once.
    """

    step: int
    begin: float
    end: float
    upto: float
    rows: int
    queue: int
    results: int
    delay_greatest: float
    comparisons: int
    inserted: int
    hops: int
    operator_rows: int
    work: float
    state_rows: int
    intermediate_rows: int


@dataclass(frozen=True)
class TraceStage:
    """A migration stage: from T_M-start to T_M-end (Zhu §4), in virtual seconds; `ended` is None if it never did.

    `comparisons` is the migration's extra work as its event says. `arrivals` is the length in the streams' time:
    so many seconds of arrivals were taken meanwhile, however long the processor took over them.
    """

    strategy: str
    plan: str
    began: float
    ended: float | None
    comparisons: int
    arrivals: float

    @property
    def length(self) -> float:
        """The length of the stage; infinite if it never ended."""
        return float("inf") if self.ended is None else self.ended - self.began


@dataclass(frozen=True)
class Trace:
    """The steps and events of a run."""

    steps: tuple[Step, ...]
    events: tuple[Event, ...]

    def column(self, name: str) -> Numbers:
        """Collect a field of the steps, in order, as numbers."""
        return np.array([getattr(step, name) for step in self.steps], np.float64)

    def total(self, name: str, since: float = 0.0, until: float = float("inf")) -> float:
        """Sum a field over the steps that begin within a span: comparisons, results, rows."""
        return float(self.column(name)[self._within(since, until)].sum())

    def peak(self, name: str, since: float = 0.0, until: float = float("inf")) -> float:
        """Find the greatest value of a field over the steps that begin within a span; 0 without steps."""
        return float(self.column(name)[self._within(since, until)].max(initial=0.0))

    def rate(self, width: float, until: float, name: str = "results") -> tuple[Numbers, Numbers]:
        """Compute a field a second, in bins of `width` seconds: (middle of each bin, rate).

        Results count where they end.
        """
        edges = np.arange(0.0, until + width / 2, width)
        found, _ = np.histogram(self.column("end"), edges, weights=self.column(name))
        return (edges[:-1] + edges[1:]) / 2, found / width

    def level(self, name: str, seconds: Numbers) -> Numbers:
        """Look up a field at these times, as the last step that had ended left it; 0 before the first."""
        at = np.searchsorted(self.column("end"), seconds, "right")
        return np.concatenate([[0.0], self.column(name)])[at]

    def silence(self, since: float = 0.0, until: float = float("inf")) -> float:
        """Find the longest time without a result in a span; the span's beginning counts as one, and the run's end."""
        ends = self.column("end")
        until = min(until, float(ends[-1]))
        seconds = ends[(self.column("results") > 0) & (ends > since) & (ends <= until)]
        return float(np.diff(np.concatenate([[since], seconds, [until]])).max())

    @property
    def stages(self) -> tuple[TraceStage, ...]:
        """The migrations, in the order they began."""
        steps = {step.step: step for step in self.steps}
        ended = [event for event in self.events if isinstance(event, MigrationEnded)]
        found = []
        for event in self.events:
            if isinstance(event, MigrationBegun):
                last = next((e for e in ended if e.plan == event.new and e.step >= event.step), None)
                if last is not None:
                    ended.remove(last)
                found.append(_stage(event, steps[event.step], last, None if last is None else steps[last.step]))
        return tuple(found)

    @property
    def stage(self) -> TraceStage:
        """The only migration of the run."""
        (found,) = self.stages
        return found

    def _within(self, since: float, until: float) -> npt.NDArray[np.bool_]:
        begin = self.column("begin")
        return (begin >= since) & (begin < until)


def _stage(begun: MigrationBegun, first: Step, ended: MigrationEnded | None, last: Step | None) -> TraceStage:
    if ended is None or last is None:
        return TraceStage(begun.strategy, begun.new, first.begin, None, 0, float("inf"))
    return TraceStage(begun.strategy, begun.new, first.begin, last.end, ended.comparisons, last.upto - first.upto)
