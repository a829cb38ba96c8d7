"""The shape of a scenario: what the streams bring, which queries join them, and what the optimizer must reach.

All times are in windows of the query, so that a scenario is the same at every load and on every host.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import cos, pi
from typing import Literal

from benchmarks.plan_change.scenario import Feed, Profile

Kind = Literal["drifting", "steady", "flapping"]
"""Whether another plan becomes the best one to stay, none does, or one does and no longer is once it is run."""


@dataclass(frozen=True)
class Scenario:
    """A seeded course of the streams; `looks` are moments by which each phase of it has shown what it is like.

    `where` is the condition of all queries; each asks for the ids of the rows that are joined. The first has the whole
    window, further ones shorter ones. `regions` are disjoint sets of keys, each by the number of rows to a key that one
    window of a stream at the full rate would have, were all its keys from there. All begin with the plan that is the
    best one at the first look, or the worst one. `scale` multiplies the rate of the load.
    """

    name: str
    title: str
    kind: Kind
    feeds: Mapping[str, Feed]
    regions: Mapping[str, float]
    where: str
    looks: tuple[float, ...]
    length: float
    begins: Literal["best", "worst"] = "best"
    queries: int = 1
    scale: float = 1.0
    seed: int = 0

    def sqls(self, window: float) -> dict[str, str]:
        """The queries by name, over a window in seconds."""
        ids = ", ".join(f"{stream}.id AS {stream.lower()}" for stream in self.feeds)
        shares = {f"q{number:02}": 1 - number / (2 * self.queries) for number in range(self.queries)}
        return {
            name: f"SELECT {ids}, _ts FROM {', '.join(self.feeds)} WHERE {self.where} "
            f"WINDOW {round(share * window * 1e6)} MICROSECONDS"
            for name, share in shares.items()
        }


def turns(*pieces: tuple[float, float]) -> Profile:
    """A number that jumps: each piece gives the time from which on it has a value.

    >>> turns((0, 1.0), (2, 0.5)).at([1, 3]).tolist()
    [1.0, 0.5]
    """
    points = [pieces[0]]
    for at, value in pieces[1:]:
        points += [(at, points[-1][1]), (at, value)]
    return Profile(tuple(points))


def season(low: float, high: float, period: float, length: float, *, begins: Literal["low", "high"]) -> Profile:
    """A number that swings between two others.

    >>> season(0.0, 1.0, period=8, length=16, begins="low").at([0, 4, 8]).round(3).tolist()
    [0.0, 1.0, 0.0]
    """
    sign = 1 if begins == "high" else -1
    times = [period * n / 32 for n in range(round(32 * length / period) + 1)]
    return Profile(tuple((at, low + (high - low) * (1 + sign * cos(2 * pi * at / period)) / 2) for at in times))
