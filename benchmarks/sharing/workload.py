"""What is asked and what arrives: windows, filters, the queries made of them, and the rows of two streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

SECOND = 1_000_000
LONGEST = 30 * SECOND
STREAMS = ("A", "B")
SCHEMA = "id BIGINT, k BIGINT, v DOUBLE, ts TIMESTAMP"
SELECTIVITY = 0.025
"""The join selectivity of Wang §8.3: that many of all pairs have equal keys."""


def uniform(count: int) -> tuple[int, ...]:
    """Windows in equal distances, in microseconds.

    >>> [window / SECOND for window in uniform(12)]
    [2.5, 5.0, 7.5, 10.0, 12.5, 15.0, 17.5, 20.0, 22.5, 25.0, 27.5, 30.0]
    """
    return _spread(0, LONGEST, count)


def mostly_small(count: int) -> tuple[int, ...]:
    """Ten of twelve up to a third of the longest window.

    >>> [round(window / SECOND) for window in mostly_small(12)]
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30]
    """
    small = round(count * 10 / 12) if count > 1 else 0
    return (*_spread(0, LONGEST // 3, small), *_spread(LONGEST // 3 if small else 0, LONGEST, count - small))


def small_large(count: int) -> tuple[int, ...]:
    """Half of them small, half of them large, none between.

    >>> [round(window / SECOND) for window in small_large(12)]
    [1, 2, 3, 4, 5, 6, 25, 26, 27, 28, 29, 30]
    """
    small, fifth = count // 2, LONGEST // 5
    return (*_spread(0, fifth, small), *_spread(LONGEST - fifth, LONGEST, count - small))


def _spread(low: int, high: int, count: int) -> tuple[int, ...]:
    return tuple(low + (high - low) * number // count for number in range(1, count + 1))


DISTRIBUTIONS: Mapping[str, Callable[[int], tuple[int, ...]]] = {
    "uniform": uniform,
    "mostly_small": mostly_small,
    "small_large": small_large,
}
"""Wang's Table 8.2; for another number of queries windows are spread over the same ranges."""

LEVELS = 4
"""How many different filters there are; `push_down` needs a join for each combination of them."""


def nested(number: int) -> str | None:
    """A threshold on A that half of all rows pass on average; each filter's rows are among those of a weaker one."""
    return f"A.v > {(number % LEVELS + 0.5) / LEVELS:g}"


def apart(number: int) -> str | None:
    """A range of A that half of all rows pass; no filter's rows are among those of another."""
    low = 0.5 * (number % LEVELS) / (LEVELS - 1)
    return f"A.v BETWEEN {low:.6g} AND {low + 0.5:.6g}"


FILTERS: Mapping[str, Callable[[int], str | None]] = {"none": lambda number: None, "nested": nested, "apart": apart}
"""Selections on stream A, S_sigma 0.5 (Wang Table 8.1, middle), different ones whatever the windows."""


def sql(window: int, selection: str | None = None) -> str:
    """One query: the equi-join of the pair within a window, its results known by the rows they are made of."""
    where = "A.k = B.k" if selection is None else f"A.k = B.k AND {selection}"
    return f"SELECT A.id AS a, B.id AS b, _ts FROM A, B WHERE {where} WINDOW {window} MICROSECONDS"


@dataclass(frozen=True)
class Workload:
    """A number of queries with windows of a distribution, and filters or none."""

    queries: int
    distribution: str = "uniform"
    filters: str = "none"

    @property
    def name(self) -> str:
        """What the workload is called on the page."""
        kind = "" if self.filters == "none" else f", {self.filters} filters"
        return f"{self.queries:,} {'query' if self.queries == 1 else 'queries'}, {self.distribution}{kind}"

    def windows(self) -> tuple[int, ...]:
        """The windows, smallest first."""
        return DISTRIBUTIONS[self.distribution](self.queries)

    def sqls(self) -> dict[str, str]:
        """The queries by name, smallest window first."""
        selection = FILTERS[self.filters]
        return {f"q{n}": sql(window, selection(n)) for n, window in enumerate(self.windows())}


@dataclass
class Feed:
    """Two endless streams: so many rows a second each, and keys by which `selectivity` of all pairs join."""

    rate: int
    selectivity: float = SELECTIVITY
    seed: int = 0

    def __post_init__(self) -> None:
        self._random, self._now, self._id = np.random.default_rng(self.seed), 0, 0

    @property
    def given(self) -> int:
        """How many rows each stream has brought."""
        return self._id

    def next(self, seconds: float) -> dict[str, pa.Table]:
        """What both streams bring in the next so many seconds: arrival times as in a Poisson process of known count."""
        begin, end = self._now, self._now + round(seconds * SECOND)
        count = round(self.rate * seconds)
        tables = {stream: self._table(begin, end, count) for stream in STREAMS}
        self._now, self._id = end, self._id + count
        return tables

    def _table(self, begin: int, end: int, count: int) -> pa.Table:
        random, keys = self._random, round(1 / self.selectivity)
        times = np.sort(random.integers(begin, end, count))
        return pa.table(
            {
                "id": np.arange(self._id, self._id + count),
                "k": random.integers(0, keys, count),
                "v": random.random(count),
                "ts": pa.array(times, pa.timestamp("us", "UTC")),
            }
        )
