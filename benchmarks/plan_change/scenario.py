"""The shape of a scenario: which streams bring what, how that drifts, which plans there are and when they change.

All times are in windows of the query, so that a scenario is the same at every load and on every host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Profile:
    """A number that follows time: straight lines between points; two points at one time make a jump.

    >>> Profile(((0, 1.0), (2, 1.0), (2, 0.5))).at([1, 3]).tolist()
    [1.0, 0.5]
    """

    points: tuple[tuple[float, float], ...]

    def at(self, times: Sequence[float] | npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The values at some times."""
        xs, ys = zip(*self.points, strict=True)
        values: npt.NDArray[np.float64] = np.interp(times, xs, ys)
        return values


def always(value: float) -> Profile:
    """A number that does not change."""
    return Profile(((0.0, value),))


def flip(at: float, before: float, after: float) -> Profile:
    """A number that jumps once."""
    return Profile(((0.0, before), (at, before), (at, after)))


@dataclass(frozen=True)
class Feed:
    """What one stream brings: its rate as a share of the load's, and for each key column where its keys come from.

    A column gives for each of the scenario's regions of keys the share of rows with a key from there. All other rows
    have keys that no other stream has.
    """

    rate: Profile
    keys: Mapping[str, Mapping[str, Profile]]


@dataclass(frozen=True)
class Forms:
    """One plan in the notations that strategies ask for: a tree, and the probing orders that stand for it."""

    tree: str
    orders: str


@dataclass(frozen=True)
class Change:
    """A change of plan that is asked for at a time, in windows."""

    at: float
    to: Forms


@dataclass(frozen=True)
class Scenario:
    """A seeded drift and the answer to it: up to `drift` the old plan is the better one, in the end the last one.

    `where` is the query's condition; the query asks for the ids of the rows that are joined. `regions` are disjoint
    sets of keys, each by the number of rows to a key that one window of a stream at the full rate would have, were all
    its keys from there.
    """

    name: str
    title: str
    feeds: Mapping[str, Feed]
    regions: Mapping[str, float]
    where: str
    old: Forms
    changes: tuple[Change, ...]
    drift: float
    length: float
    seed: int = 0

    def sql(self, window: float) -> str:
        """The query, over a window in seconds."""
        ids = ", ".join(f"{stream}.id AS {stream.lower()}" for stream in self.feeds)
        span = f"WINDOW {round(window * 1e6)} MICROSECONDS"
        return f"SELECT {ids}, _ts FROM {', '.join(self.feeds)} WHERE {self.where} {span}"
