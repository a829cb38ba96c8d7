"""A query that begins with the worst plan of five streams."""

from __future__ import annotations

from benchmarks.optimizer.scenario import Scenario
from benchmarks.plan_change.scenario import Feed, always


def feed(rate: float, share: float) -> Feed:
    """A stream with a share of the common keys."""
    return Feed(always(rate), {"k": {"all": always(share)}})


BAD_START = Scenario(
    name="bad_start",
    title="nothing drifts, but the query begins with the worst plan of five streams",
    kind="steady",
    feeds={"A": feed(0.6, 1.0), "B": feed(0.6, 1.0), "C": feed(0.6, 0.8), "D": feed(0.4, 0.2), "E": feed(0.4, 0.2)},
    regions={"all": 4.0},
    where="A.k = B.k AND B.k = C.k AND C.k = D.k AND D.k = E.k",
    looks=(2.0,),
    length=24.0,
    begins="worst",
    scale=0.5,
    seed=11,
)
