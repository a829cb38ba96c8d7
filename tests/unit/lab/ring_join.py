"""The join that every ring and its rivals must give, by definition."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from midstream.lab.ring_cluster import RingArrivals, Row

WINDOW = 4.0


def expected(arrivals: RingArrivals, begin: float = 0.0) -> set[frozenset[Row]]:
    """The window join by definition: all in the window of the newest, neighbours match; strict windows."""
    found: list[tuple[int, ...]] = [()]
    for stream, times in enumerate(arrivals.times):
        found = [
            (*numbers, number)
            for numbers, number in product(found, range(len(times)))
            if not numbers or arrivals.matches[stream - 1][numbers[-1], number]
            if _span(arrivals, (*numbers, number))[1] < WINDOW
        ]
    return {frozenset(enumerate(numbers)) for numbers in found if _span(arrivals, numbers)[0] >= begin}


def _span(arrivals: RingArrivals, numbers: tuple[int, ...]) -> tuple[float, float]:
    """The time of the newest row, and what lies between it and the oldest."""
    times = [float(own[number]) for own, number in zip(arrivals.times, numbers, strict=False)]
    return max(times), max(times) - min(times)


def as_sets(results: Iterable[tuple[Row, ...]]) -> set[frozenset[Row]]:
    """Results whatever the order in which their rows were found; none may have come twice."""
    found = list(map(frozenset, results))
    assert len(found) == len(set(found))
    return set(found)
