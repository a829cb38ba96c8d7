"""The length of each stream's ring (Wang §13.3): how many nodes its state is sliced over.

Streams are taken by how many matches a partial result has among their rows (lambda_i W_i S_i), the fewest first. Each
gets the length that costs least, where the streams before it have theirs and the others have as many nodes as it has.

Differs from §13.3 in that every stream is then looked at again, with the lengths that the others have got, until none
changes. The first one would keep the length that is best if all have it: too long where it has little to do. For the
output rate that may end where only a change of two lengths would help, so it begins again with short rings, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from midstream.ring.cost import RingCosts, RingLoad, result_latency

Lengths = Mapping[str, int]
Cost = Callable[[Lengths], float]


@dataclass(frozen=True)
class RouteLoad:
    """The rows of a stream `start` that come in some time, and what each does: a step of `load` for each of `order`."""

    start: str
    order: tuple[str, ...]
    rows: float
    load: RingLoad

    @property
    def results(self) -> float:
        """The results of these rows."""
        last = self.load.steps[-1]
        return self.rows * self.load.partials[-1] * last.rows * last.selectivity


def mean_latency(routes: Sequence[RouteLoad], costs: RingCosts, lengths: Lengths) -> float:
    """Estimate the mean time from a row to one of its results; over rows where there is no result."""
    weights = [route.results for route in routes]
    if not any(weights):
        weights = [route.rows for route in routes]
    found = [result_latency(route.load, costs, [lengths[label] for label in route.order]) for route in routes]
    return sum(weight * one for weight, one in zip(weights, found, strict=True)) / sum(weights)


def busiest(routes: Sequence[RouteLoad], costs: RingCosts, lengths: Lengths) -> float:
    """Compute how long the busiest node works for these rows, which bounds the output rate (Eq. 13.1, 13.3)."""
    return max(_deployed(routes, costs, lengths)[1])


def rings_of(routes: Sequence[RouteLoad], costs: RingCosts, lengths: Lengths) -> dict[str, tuple[int, ...]]:
    """Choose the nodes of each ring, of as many as the longest has: those that have least to do (§13.4).

    >>> step = RingLoad.alike(2, 50, 0.1)
    >>> routes = [RouteLoad("A", ("B",), 9, step), RouteLoad("B", ("A",), 1, step)]
    >>> rings_of(routes, RingCosts(join=1e-3), {"A": 1, "B": 2})
    {'B': (0, 1), 'A': (0,)}
    """
    return _deployed(routes, costs, lengths)[0]


def by_matches(routes: Sequence[RouteLoad]) -> list[str]:
    """Sort streams by the matches that a partial result has among their rows, on average over all that visit them."""
    visits, matches = dict.fromkeys((route.start for route in routes), 0.0), dict[str, float]()
    for route in routes:
        for label, partials, step in zip(route.order, route.load.partials, route.load.steps, strict=True):
            visits[label] += route.rows * partials
            matches[label] = matches.get(label, 0.0) + route.rows * partials * step.rows * step.selectivity
    return sorted(visits, key=lambda label: (matches.get(label, 0.0) / max(visits[label], 1.0), label))


def lengths_for(streams: Sequence[str], most: int, cost: Cost) -> dict[str, int]:
    """Find the lengths, each at most `most`, of the least cost, in this order of streams.

    >>> lengths_for("AB", 9, lambda n: 16 / n["A"] + n["A"] + 4 / n["B"] + n["B"])
    {'A': 4, 'B': 2}
    """
    found: dict[str, int] = {}
    for label in streams:
        found[label] = _least(label, found, streams, most, cost)
    short = [{label: 1 if at < count else most for at, label in enumerate(streams)} for count in range(1, len(streams))]
    return min((_settled(begun, streams, most, cost) for begun in (found, *short)), key=cost)


def _settled(begun: Lengths, streams: Sequence[str], most: int, cost: Cost) -> dict[str, int]:
    found, before = dict(begun), dict[str, int]()
    while before != found:
        before = dict(found)
        for label in streams:
            found[label] = _least(label, found, (), most, cost)
    return found


def _least(label: str, known: Lengths, unknown: Sequence[str], most: int, cost: Cost) -> int:
    # The unknown ones have the same length. Of equal costs the shortest.
    def with_length(nodes: int) -> float:
        return cost({**dict.fromkeys(unknown, nodes), **known, label: nodes})

    return min(range(1, most + 1), key=with_length)


def _deployed(
    routes: Sequence[RouteLoad], costs: RingCosts, lengths: Lengths
) -> tuple[dict[str, tuple[int, ...]], list[float]]:
    # The rings, and how long each node works. The stream that keeps its nodes busiest chooses first.
    each = _seconds(routes, costs, lengths)
    busy, rings = [0.0] * max(lengths.values()), dict[str, tuple[int, ...]]()
    for label in sorted(each, key=lambda one: (-each[one], one)):
        free = sorted(range(len(busy)), key=lambda node: (busy[node], node))
        rings[label] = tuple(sorted(free[: lengths[label]]))
        for node in rings[label]:
            busy[node] += each[label]
    return rings, busy


def _seconds(routes: Sequence[RouteLoad], costs: RingCosts, lengths: Lengths) -> dict[str, float]:
    # What each node of a stream's ring does for its share of the state: a partial result visits all of them.
    found = dict.fromkeys(lengths, 0.0)
    for route in routes:
        found[route.start] += route.rows * (costs.insert + costs.purge) / lengths[route.start]
        for label, partials, step in zip(route.order, route.load.partials, route.load.steps, strict=True):
            found[label] += route.rows * partials * (costs.join * step.rows / lengths[label] + costs.send)
    return found
