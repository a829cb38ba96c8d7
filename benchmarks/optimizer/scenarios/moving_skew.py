"""Skew that moves: few keys have many rows, first in one pair of streams, then in another."""

from __future__ import annotations

from benchmarks.optimizer.scenario import Scenario, turns
from benchmarks.plan_change.scenario import Feed, Profile, always


def skewed(*spans: tuple[float, float]) -> Profile:
    """A few percent of a stream's rows have one of the hot keys in these spans."""
    jumps = sorted([(begin, 0.04) for begin, _ in spans] + [(end, 0.0) for _, end in spans])
    merged = [jump for jump in jumps if sum(other[0] == jump[0] for other in jumps) == 1]
    return turns((0, 0.04) if merged[0][0] == 0 else (0, 0.0), *(jump for jump in merged if jump[0] > 0))


def feed(*spans: tuple[float, float]) -> Feed:
    """A stream whose rows have hot keys in some spans."""
    return Feed(always(0.7), {"k": {"hot": skewed(*spans), "all": always(0.4)}})


MOVING_SKEW = Scenario(
    name="moving_skew",
    title="of four streams A and B have the same hot keys, later B and C, then C and D",
    kind="drifting",
    feeds={"A": feed((0, 13)), "B": feed((0, 13), (13, 26)), "C": feed((13, 26), (26, 39)), "D": feed((26, 39))},
    regions={"hot": 1000.0, "all": 6.0},
    where="A.k = B.k AND B.k = C.k AND C.k = D.k",
    looks=(4.0, 17.0, 30.0),
    length=39.0,
    seed=7,
)
