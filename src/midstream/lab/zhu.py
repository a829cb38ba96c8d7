"""Zhu's experiments (§6): the query of Fig. 4, the two plans, Table 2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from midstream.lab.generator import Source, Workload, equal, query

OLD = "(((A B) C) D)"
NEW = "(A ((B C) D))"
"""The boxes of Figs. 4 and 5, left and right."""

MILLI = 0.001


@dataclass(frozen=True)
class Setting:
    """A column of Table 2: window and mean inter-arrival times in ms, reduction factors of the three joins."""

    window: float
    inter_arrival: Mapping[str, float]
    sigma: Mapping[str, float]

    @property
    def seconds(self) -> float:
        """The window W in seconds."""
        return self.window * MILLI

    def rate(self, stream: str) -> float:
        """lambda of a stream, in rows a second."""
        return 1 / (self.inter_arrival[stream] * MILLI)

    def workload(self, seed: int = 4) -> Workload:
        """Poisson streams, a column per predicate, every join a nested loop as in the paper's cost model (§5.1)."""
        size = {pair: 1 / factor for pair, factor in self.sigma.items()}
        sources = tuple(
            Source(name, self.rate(name), {pair.lower(): round(size[pair]) for pair in size if name in pair})
            for name in self.inter_arrival
        )
        predicates = [
            equal(f"{pair[0]}.{pair.lower()}", f"{pair[1]}.{pair.lower()}", nested=True) for pair in self.sigma
        ]
        window = f"RANGE {round(self.window)} MILLISECONDS"
        return Workload(sources, query(list(self.inter_arrival), predicates, window), seed)


def set_1(window: float) -> Setting:
    """Table 2, set 1 of §6.2."""
    return Setting(window, dict.fromkeys("ABCD", 100.0), {"AB": 0.1, "BC": 0.05, "CD": 0.02})


SPEED = 200_000
"""Comparisons a second that suffice for set 1 up to W = 7 s, old and new plan at once."""
