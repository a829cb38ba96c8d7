"""A figure that may be an estimate: with bounds, and whence it is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from math import prod, sqrt


class Origin(StrEnum):
    """Whence a figure is known, surest first."""

    COUNTED = "counted"
    """Exactly, by the states of the running plan."""
    SAMPLED = "sampled"
    """From samples of the rows that are alive."""
    GUESSED = "guessed"
    """From joins of other streams, or from nothing but sizes."""

    @staticmethod
    def least_sure(origins: Iterable[Origin]) -> Origin:
        """Return the origin of a figure that is made of others: that of the least sure one.

        >>> Origin.least_sure([Origin.SAMPLED, Origin.COUNTED])
        <Origin.SAMPLED: 'sampled'>
        """
        return max(origins, key=list(Origin).index, default=Origin.COUNTED)


@dataclass(frozen=True)
class Bounded:
    """A figure and the bounds that the true one lies within, most likely; both are the value where it is exact.

    >>> Bounded(10.0, 8.0, 12.0, Origin.SAMPLED) * Bounded.exactly(3)
    Bounded(value=30.0, low=24.0, high=36.0, origin=<Origin.SAMPLED: 'sampled'>)
    """

    value: float
    low: float
    high: float
    origin: Origin

    @staticmethod
    def exactly(value: float) -> Bounded:
        """Make a figure that was counted."""
        return Bounded(value, value, value, Origin.COUNTED)

    @staticmethod
    def sampled(value: float, variance: float) -> Bounded:
        """Make an estimate from a sample: two standard deviations to either side, but never below nothing.

        >>> Bounded.sampled(10.0, 16.0)
        Bounded(value=10.0, low=2.0, high=18.0, origin=<Origin.SAMPLED: 'sampled'>)
        """
        deviation = 2 * sqrt(max(variance, 0.0))
        return Bounded(value, max(value - deviation, 0.0), value + deviation, Origin.SAMPLED)

    def __mul__(self, other: Bounded) -> Bounded:
        origin = Origin.least_sure([self.origin, other.origin])
        return Bounded(self.value * other.value, self.low * other.low, self.high * other.high, origin)

    @staticmethod
    def product(factors: Iterable[Bounded]) -> Bounded:
        """Multiply independent figures; 1 of none."""
        found = list(factors)
        origin = Origin.least_sure(f.origin for f in found)
        return Bounded(prod(f.value for f in found), prod(f.low for f in found), prod(f.high for f in found), origin)
