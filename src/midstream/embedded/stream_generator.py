"""Arrivals by Poisson processes, with rates, values and skews that may change over event time.

In: what a stream is to look like, and a generator of random numbers. Out: Arrow tables in order of event time. The lab
draws its figures from these rows, and a stream of the format `generator` brings them to a job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from midstream.model.window import SECOND


@dataclass(frozen=True)
class Schedule:
    """A setting over event time: pieces (from second, value), constant in between; the first begins at 0.

    >>> Schedule(((0, 20), (60, 400))).at(np.array([0.0, 59.9, 60.0])).tolist()
    [20.0, 20.0, 400.0]
    """

    pieces: tuple[tuple[float, float], ...]

    @staticmethod
    def of(value: float | Schedule) -> Schedule:
        """Convert a plain number to a constant schedule."""
        return value if isinstance(value, Schedule) else Schedule(((0.0, float(value)),))

    def at(self, seconds: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Look up the value at each of these times."""
        starts, values = (np.array(side, np.float64) for side in zip(*self.pieces, strict=True))
        found: npt.NDArray[np.float64] = values[np.searchsorted(starts, seconds, "right") - 1]
        return found

    def spans(self, start: float, until: float) -> Iterable[tuple[float, float, float]]:
        """Enumerate the pieces (from, to, value) between two times."""
        ends = [begin for begin, _ in self.pieces[1:]] + [until]
        for (begin, value), end in zip(self.pieces, ends, strict=True):
            if max(begin, start) < min(end, until):
                yield max(begin, start), min(end, until), value


@dataclass(frozen=True)
class GeneratedStream:
    """A stream: rows a second, and for each column the size of its domain; values are whole numbers below it.

    Two columns of domain n are equal with selectivity 1/n; a column of domain m > n meets one of domain n with 1/m
    (HybMig §5.1's rare values). Values are uniform, except in columns with a `skew` s: there the value v has a
    probability in proportion to about (v + 1)^-s, as of a Zipf distribution. All three may be schedules.
    """

    name: str
    rate: float | Schedule
    columns: Mapping[str, float | Schedule]
    skew: Mapping[str, float | Schedule] = field(default_factory=dict)

    def rows(self, start: float, until: float, generator: np.random.Generator) -> pa.Table:
        """Generate the arrivals from `start` on and before `until`, in order, with their event time in `ts`."""
        drawn = [np.zeros(0)]
        for begin, end, rate in Schedule.of(self.rate).spans(start, until):
            # A Poisson process over a span: a Poisson number of independent uniform times.
            drawn.append(generator.uniform(begin, end, generator.poisson(rate * (end - begin))))
        seconds = np.sort(np.concatenate(drawn))
        values = {name: self._values(name, seconds, generator) for name in self.columns}
        # A time must not be rounded out of its span, where the stream's watermark would make it late.
        first, last = round(start * SECOND), round(until * SECOND) - 1
        times = np.clip((seconds * SECOND).astype(np.int64), first, last)
        return pa.table({**values, "ts": pa.array(times, pa.timestamp("us"))})

    def _values(
        self, name: str, seconds: npt.NDArray[np.float64], generator: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        sizes = Schedule.of(self.columns[name]).at(seconds).astype(np.int64)
        if name not in self.skew:
            found: npt.NDArray[np.int64] = generator.integers(0, sizes, len(seconds))
            return found
        # By the inverse of the distribution function of the density x^-s between 1 and n + 1, rounded down.
        drawn, skews = generator.random(len(seconds)), Schedule.of(self.skew[name]).at(seconds)
        powers = np.where(skews == 1, 1.0, 1 - skews)
        ends = (sizes + 1.0) ** powers
        places = np.where(skews == 1, ends**drawn, (1 + drawn * (ends - 1)) ** (1 / powers))
        return np.minimum(places, sizes).astype(np.int64) - 1

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        return pa.schema([*((name, pa.int64()) for name in self.columns), ("ts", pa.timestamp("us"))])
