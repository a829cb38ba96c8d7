"""The join that every ring and its rivals must give, by definition."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from midstream.lab.ring_arrivals import RingArrivals, Row

WINDOW = 4.0


def expected(arrivals: RingArrivals, begin: float = 0.0) -> set[frozenset[Row]]:
    """The window join by definition: all in the window of the newest, neighbours match; strict windows."""
    found = set()
    for numbers in product(*(range(len(times)) for times in arrivals.times)):
        times = [float(arrivals.times[stream][number]) for stream, number in enumerate(numbers)]
        matched = all(m[a, b] for m, a, b in zip(arrivals.matches, numbers, numbers[1:], strict=False))
        if matched and max(times) - min(times) < WINDOW and max(times) >= begin:
            found.add(frozenset(enumerate(numbers)))
    return found


def as_sets(results: Iterable[tuple[Row, ...]]) -> set[frozenset[Row]]:
    """Results whatever the order in which their rows were found; none may have come twice."""
    found = list(map(frozenset, results))
    assert len(found) == len(set(found))
    return set(found)
