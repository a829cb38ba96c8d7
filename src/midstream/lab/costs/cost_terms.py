"""What a plan costs: memory of its states and work per unit of time, term by term."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """The terms of C_m and C_p, each by the name of what it is for.

    >>> Cost(memory={"A": 2.0, "B": 2.0}, cpu={"probe": 8.0}).c_m
    4.0
    """

    memory: Mapping[str, float]
    cpu: Mapping[str, float]

    @property
    def c_m(self) -> float:
        """State memory C_m, the sum of all terms."""
        return sum(self.memory.values())

    @property
    def c_p(self) -> float:
        """CPU cost C_p, the sum of all terms."""
        return sum(self.cpu.values())
