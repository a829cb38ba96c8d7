"""The rows of a scenario: made once, by seed, in order of arrival."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.plan_change.scenario import Feed, Profile

GRID = 10_000
"""Pieces that a run is cut into to draw arrivals from a rate that changes."""

OWN = 10_000_000
"""How many keys a stream has for itself; they are negative, those of the regions are not."""

Counts = dict[str, int]
"""For each stream how many of its rows, from the first on."""


class Drift(Protocol):
    """What rows are made by: `feeds` over the key `regions`, for so many windows."""

    @property
    def feeds(self) -> Mapping[str, Feed]: ...
    @property
    def regions(self) -> Mapping[str, float]: ...
    @property
    def length(self) -> float: ...
    @property
    def seed(self) -> int: ...


class Density(Protocol):
    """How many there are: the seconds of a window, and the rows a second of a full-rate stream."""

    @property
    def window(self) -> float: ...
    @property
    def rate(self) -> float: ...


@dataclass(frozen=True)
class Rows:
    """Every row of a run: a table a stream with `id` (0, 1, 2, ... in order of arrival), keys, and `ts`.

    Event time is the time of arrival, in microseconds since the beginning of the run.
    """

    tables: Mapping[str, pa.Table]
    times: Mapping[str, npt.NDArray[np.int64]]

    def arrived(self, seconds: float) -> Counts:
        """How many rows of each stream have arrived so far."""
        return {s: int(np.searchsorted(t, seconds * 1e6, side="right")) for s, t in self.times.items()}

    def total(self) -> Counts:
        """How many rows there are."""
        return {stream: len(times) for stream, times in self.times.items()}

    def between(self, since: Counts, until: Counts) -> dict[str, pa.Table]:
        """The rows from one place to another."""
        return {s: table.slice(since[s], until[s] - since[s]) for s, table in self.tables.items()}

    def still_in_window(self, taken: Counts, window: float) -> Counts:
        """Where the rows begin that a row which is yet to come may join."""
        oldest = min(int(self.times[s][n - 1]) if n else 0 for s, n in taken.items()) - round(window * 1e6)
        return {s: min(taken[s], int(np.searchsorted(t, oldest))) for s, t in self.times.items()}


def generate(scenario: Drift, load: Density) -> Rows:
    """The rows of a scenario at a load; the same on every call."""
    regions = _regions(scenario, load)
    tables, times = {}, {}
    for number, (stream, feed) in enumerate(scenario.feeds.items()):
        random = np.random.default_rng([scenario.seed, number])
        moments = _arrivals(random, feed.rate, scenario.length, load)
        columns = {"id": pa.array(np.arange(len(moments)))}
        for key, shares in feed.keys.items():
            columns[key] = pa.array(_keys(random, moments, shares, regions, -(number + 1) * OWN))
        times[stream] = np.round(moments * load.window * 1e6).astype(np.int64)
        columns["ts"] = pa.array(times[stream], pa.timestamp("us", "UTC"))
        tables[stream] = pa.table(columns)
    return Rows(tables, times)


def _regions(scenario: Drift, load: Density) -> dict[str, tuple[int, int]]:
    """Each region's first key and how many it has."""
    sizes = {name: max(1, round(load.rate * load.window / fanout)) for name, fanout in scenario.regions.items()}
    ends = accumulate(sizes.values())
    return {name: (end - size, size) for (name, size), end in zip(sizes.items(), ends, strict=True)}


def _arrivals(random: np.random.Generator, rate: Profile, length: float, load: Density) -> npt.NDArray[np.float64]:
    """Sorted times, in windows, at random but as dense as the rate says."""
    grid = np.linspace(0, length, GRID + 1)
    middles = (grid[1:] + grid[:-1]) / 2
    expected = np.concatenate([[0.0], np.cumsum(rate.at(middles))]) * (length / GRID) * load.window * load.rate
    places = np.sort(random.random(round(expected[-1]))) * expected[-1]
    found: npt.NDArray[np.float64] = np.interp(places, expected, grid)
    return found


def _keys(
    random: np.random.Generator,
    moments: npt.NDArray[np.float64],
    shares: Mapping[str, Profile],
    regions: Mapping[str, tuple[int, int]],
    own: int,
) -> npt.NDArray[np.int64]:
    """A key for each row: from a region with the region's share at that moment, else one of the stream's own."""
    keys = own + random.integers(0, OWN, len(moments))
    draw, below = random.random(len(moments)), np.zeros(len(moments))
    for region, share in shares.items():
        first, size = regions[region]
        above = below + share.at(moments)
        chosen = (draw >= below) & (draw < above)
        keys[chosen] = first + random.integers(0, size, np.count_nonzero(chosen))
        below = above
    return keys
