"""What a step took by the clock, and how far it was behind its sources. Hosts measure it; no answer depends on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from midstream.model.words import brief_text, counted

MINUTE = 60.0
"""The summary of a job's times is of the steps that ended in so many seconds before its newest."""


@dataclass(frozen=True)
class StepTotals:
    """What has come together since an engine or a job was started: steps, seconds by phase, migrations that began."""

    steps: int = 0
    phases: Mapping[str, float] = field(default_factory=dict)
    migrations: int = 0

    def plus(self, steps: int, phases: Mapping[str, float], migrations: int) -> StepTotals:
        """Add steps, seconds by phase and migrations.

        >>> StepTotals(1, {"fold": 0.5}).plus(1, {"fold": 0.25}, 1)
        StepTotals(steps=2, phases={'fold': 0.75}, migrations=1)
        """
        added = {name: self.phases.get(name, 0.0) + seconds for name, seconds in phases.items()}
        return StepTotals(self.steps + steps, {**self.phases, **added}, self.migrations + migrations)


@dataclass(frozen=True)
class StepTime:
    """A step as the host's clocks saw it.

    `ended` is a wall clock's time, in seconds since 1970; `seconds` is what the step took, and `phases` says of what,
    in order: embedded `read` (files, the command log), `fold`, `store`, `commit`, `sinks`; on Spark `listing` (it asks
    the sources), `spark` (what else it does around a batch), `plan`, `tasks`, `commit`, `sinks`. `interval` is the
    trigger's, in seconds, if there is one. `rows` has the admitted rows by stream, `late` and `rejected` count those
    that were not, `results` those of all queries. `backlog` says by stream what still waited at the source where it can
    tell: rows of Kafka, files of a folder. `newest` is the greatest event time up to this step, `watermark` the least
    one of all streams that have one, both in microseconds. `migrations` of queries began in the step; `totals` are
    since the start.

    >>> time = StepTime(7, ended=100.0, seconds=0.5, newest=97_000_000, watermark=95_000_000)
    >>> time.watermark_lag, time.behind
    (2.0, 3.0)
    """

    step: int
    ended: float
    seconds: float
    phases: Mapping[str, float] = field(default_factory=dict)
    interval: float | None = None
    rows: Mapping[str, int] = field(default_factory=dict)
    late: int = 0
    rejected: int = 0
    results: int = 0
    backlog: Mapping[str, int] = field(default_factory=dict)
    newest: int | None = None
    watermark: int | None = None
    migrations: int = 0
    totals: StepTotals = StepTotals()

    @property
    def watermark_lag(self) -> float | None:
        """Seconds of event time from the least watermark to the newest event: how long a result may have to wait."""
        return None if self.newest is None or self.watermark is None else (self.newest - self.watermark) / 1e6

    @property
    def behind(self) -> float | None:
        """Seconds from the newest event's time to the clock when the step ended; of use where events are of today."""
        return None if self.newest is None else self.ended - self.newest / 1e6


@dataclass(frozen=True)
class StepUnderWay:
    """A step that has begun and not ended: since when, by a wall clock, and its rows where they are known by now."""

    step: int
    begun: float
    rows: int | None = None

    def sentence(self, now: float) -> str:
        """Describe the progress of the step at the time `now`, for a reader.

        >>> StepUnderWay(0, 100.0, 1_036_222).sentence(112.0), StepUnderWay(7, 100.0).sentence(100.25)
        ('step 0: 1,036,222 rows, 12 s so far', 'step 7: 250 ms so far')
        """
        rows = "" if self.rows is None else f"{counted(self.rows, 'row')}, "
        return f"step {self.step:,}: {rows}{brief_text(max(now - self.begun, 0.0))} so far"


def against_interval(seconds: float, interval: float | None) -> str:
    """Compare a step's time to the trigger's interval in words, as a multiple where the step is longer.

    >>> against_interval(0.25, 1.0), against_interval(4.2, 1.0), against_interval(0.25, None)
    ('one begins every 1 s', '4.2 times the interval of 1 s', '')
    """
    if not interval:
        return ""
    every = brief_text(interval)
    if seconds <= interval:
        return f"one begins every {every}"
    return f"{seconds / interval:,.1f} times the interval of {every}"


def rows_per_second(times: Sequence[StepTime]) -> float | None:
    """Compute the rows taken in per second of the steps' own time; None without a step. Pauses do not count.

    >>> rows_per_second([StepTime(0, 10.0, 1.0, rows={"A": 30}), StepTime(1, 900.0, 2.0, rows={"A": 60})])
    30.0
    """
    seconds = sum(one.seconds for one in times)
    return sum(sum(one.rows.values()) for one in times) / seconds if seconds > 0 else None


def time_summary(times: Sequence[StepTime]) -> dict[str, Any]:
    """Summarize the newest step's times, and means over the minute before, as JSON values; {} for none.

    `seconds` and `phases` are means of a step; `last`, `ended`, `backlog` and the lags are the newest step's.
    """
    if not times:
        return {}
    last = times[-1]
    lately = [one for one in times if one.ended >= last.ended - MINUTE]
    names = dict.fromkeys(name for one in lately for name in one.phases)
    return {
        "step": last.step,
        "ended": last.ended,
        "last": last.seconds,
        "steps": len(lately),
        "seconds": sum(one.seconds for one in lately) / len(lately),
        "phases": {name: sum(one.phases.get(name, 0.0) for one in lately) / len(lately) for name in names},
        "interval": last.interval,
        "rows_per_second": rows_per_second(lately),
        "watermark_lag": last.watermark_lag,
        "behind": last.behind,
        "backlog": dict(last.backlog),
    }
