"""The nodes of a query whose user leaves their number to the cost model (Wang ch. 13), and which ages each has.

Nodes of a ring have equally many pairs to compare (§13.4). Where queries with other windows and selections share it,
what was counted says where to cut (§21.3). Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from midstream.logical.query import query_of
from midstream.model.events import Event, QuerySpread
from midstream.model.manifest import Manifest
from midstream.model.node_spread import NodeSpread, RouteWork
from midstream.ring.cost import ProbingStep, RingCosts, RingLoad, result_latency
from midstream.ring.deploy import begun_slices, windows_of
from midstream.ring.deployment import parts_of
from midstream.ring.relocate import AGGRESSIVE, carried_over
from midstream.ring.ring_members import all_spread, mates_of, spread_queries
from midstream.ring.spreading import spreading

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


Floats = npt.NDArray[np.float64]

MEASURED = RingCosts(join=1.9e-08, insert=0, send=4.1e-07, hop=0.0025)
"""Seconds that operations of the nodes take: a pair compared, a row put in and taken out again, a visit of a partial
result, and what one more node adds to a step, however many rows there are.

Measured by `python -m benchmarks.ring.calibrate`, which prints this line again for the machine it runs on.
Putting in a row takes too little next to the others to be seen; two runs on a busy machine differed by a factor of two.
"""

MOST_CHOSEN = 16
"""So many nodes are chosen at most; a user may name more."""

STEPS_BETWEEN = 16
"""After so many steps with a number of nodes it is looked at again."""

WORTH = 1.1
"""The number changes where results come so many times as late as with the best one."""

LATENCY, RATE = "latency", "rate"
OBJECTIVES = (LATENCY, RATE)
"""What the number of nodes is chosen for: soon results (§13.2.2), or the most rows a second (§13.2.1)."""

EVEN = 1.1
"""Slices are cut again where the busiest node compares so many times what the mean one does."""

LEAST_COMPARED = 1_000
"""Unless nodes have compared so many pairs each on average: what few did is chance."""

ROUNDS, LEAST = 32, 1e-9
"""The rounds in which the work of nodes is divided over ages, and a share that counts as none."""

MOST_PIECES = 16
"""A node's share of a window is in so many slices at most where rows stay where they came."""


def lengthened(manifest: Manifest, events: list[Event]) -> Manifest:
    """Change the nodes of a step about to run where others are better by what was counted: their number, and how many
    of them have slices of a stream (§13.3).

    Decided from counters alone, so that a step that is done again decides the same. Rows go over as by the command that
    spreads a query: none is copied, and no answer changes.
    """
    for name, spread in spread_queries(manifest).items():
        if not spread.auto or manifest.step == spread.since:
            continue
        if (manifest.step - spread.since) % STEPS_BETWEEN:
            continue
        foreseen = foresee(manifest, name, manifest.step)
        if foreseen is not None and foreseen.cost > WORTH * foreseen.best_cost:
            fresh = _over(manifest, name, foreseen.best)
            events.append(QuerySpread(manifest.step, name, spread.scheme, spread.scheme, fresh.nodes))
            manifest = all_spread(manifest, name, fresh)
    return manifest


def evened(manifest: Manifest) -> Manifest:
    """Cut the slices of rings again whose nodes had unequal work since the last look, once a whole window has come.

    Decided from counters alone. Rows go over as they do when they grow older; where they stay where they came, slices
    become shorter, and rows to come are spread over more nodes.
    """
    for name, spread in spread_queries(manifest).items():
        steps = manifest.step - spread.since
        if spread.before is not None or steps == 0 or steps % STEPS_BETWEEN:
            continue
        chosen, each = spreading(spread.scheme), [name, *mates_of(manifest, name)]
        widest = max(w for one in each for w in windows_of(query_of(manifest.queries[one])).values())
        if (chosen.ages or chosen.keeps_slices) and steps * spread.span * chosen.rounds >= widest:
            manifest = all_spread(manifest, name, _evened(spread, by_age=chosen.ages))
    return manifest


def _evened(spread: NodeSpread, *, by_age: bool) -> NodeSpread:
    compared = tuple(one.comparisons for one in spread.work)
    looked = replace(spread, weighed=compared)
    if len(spread.weighed) != len(compared) or len(compared) != spread.nodes:
        return looked
    done, planned = np.subtract(compared, spread.weighed), _planned(spread)
    if done.mean() < LEAST_COMPARED or done.max() <= EVEN * planned.max() / planned.mean() * done.mean():
        return looked
    if not by_age:
        return replace(looked, pieces=min(2 * spread.pieces, MOST_PIECES))
    parts, work = _by_part(spread, done)
    cuts = np.interp(np.arange(1, spread.nodes) / spread.nodes * work[-1], work, parts)
    return replace(looked, cuts=tuple(cuts.round(6).tolist()))


def _compared_with(spread: NodeSpread) -> dict[str, float]:
    # The pairs that partial results compared with the rows of each label.
    found = dict[str, float]()
    for route in spread.routes.values():
        for label, pairs in zip(route.order, route.comparisons, strict=True):
            found[label] = found.get(label, 0.0) + pairs
    return found if any(found.values()) else dict.fromkeys(found or [""], 1.0)


def _planned(spread: NodeSpread) -> Floats:
    # By node: the nodes of a stream's ring share its pairs evenly (§13.4), and rings may differ in length.
    planned = np.zeros(spread.nodes)
    for label, pairs in _compared_with(spread).items():
        ring = list(spread.ring(label))
        planned[ring] += pairs / len(ring)
    return planned


def _by_part(spread: NodeSpread, done: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
    # Parts of an even cut, and the work up to each of them. Between them the work is taken to be even; where it is not,
    # the next look cuts again. Streams are taken to have more work at equal parts of their windows: a node's work is
    # divided over the parts that it has of all streams, again and again, until nodes have the work that was counted.
    compared = _compared_with(spread)
    rings = {label: spread.ring(label) for label in compared}
    ends = {label: np.array([0.0, *parts_of(spread.cuts, len(ring)), 1.0]) for label, ring in rings.items()}
    parts = np.unique(np.concatenate(list(ends.values())))
    shares = np.zeros((spread.nodes, len(parts) - 1))
    for label, pairs in compared.items():
        place = np.searchsorted(ends[label], parts[1:], "left") - 1
        shares[np.array(rings[label])[place], np.arange(len(place))] += pairs * np.diff(parts)
    work = np.ones(len(parts) - 1)
    for _ in range(ROUNDS):
        short = done / np.maximum((shares * work).sum(1), LEAST)
        work *= (shares * short[:, None]).sum(0) / np.maximum(shares.sum(0), LEAST)
    return parts, np.append(0.0, np.cumsum(work * np.diff(parts)))


@dataclass(frozen=True)
class Foreseen:
    """What the cost model says of a query over nodes: with the length of each stream's ring, and with the best ones.

    `seconds` are the mean time from a step's rows to one of their results. `cost` is what lengths are chosen by: that,
    or the seconds a step that the busiest node works, where the output rate is the objective.
    """

    lengths: dict[str, int]
    seconds: float
    cost: float
    best: dict[str, int]
    best_seconds: float
    best_cost: float


def foresee(manifest: Manifest, name: str, end: int) -> Foreseen | None:
    """Foresee the cost by what was counted before the step `end`; None while nothing is known."""
    spread = manifest.queries[name].nodes
    if spread is None:
        return None
    steps, rows = end - spread.since, sum(one.rows for one in spread.routes.values())
    if steps < 1 or not rows or not any(any(one.comparisons) for one in spread.routes.values()):
        return None
    routes = [route_load(label, one, steps) for label, one in spread.routes.items()]
    # A step's rows wait for the nodes together.
    costs = replace(MEASURED, hop=MEASURED.hop * steps / rows)
    streams, chosen = by_matches(routes), spreading(spread.scheme)
    latency = partial(mean_latency, routes, costs)
    cost, most = latency, MOST_CHOSEN
    if spread.objective == RATE:
        cost = partial(busiest, routes, costs)
        most = _fastest(streams, cost)
    best = lengths_for(streams, most, cost)
    if not (chosen.ages or chosen.keeps_slices):
        alike = [dict.fromkeys(streams, nodes) for nodes in range(1, most + 1)]
        best = min(alike, key=cost)
    now = {label: len(spread.ring(label)) for label in streams}
    seconds, best_seconds = (rows / steps * latency(lengths) for lengths in (now, best))
    return Foreseen(now, seconds, cost(now), best, best_seconds, cost(best))


def route_load(label: str, work: RouteWork, steps: int = 1) -> RouteLoad:
    """Estimate what the rows of a stream do in a step by what was counted in so many.

    A pair counts as in the state if it was compared, so that an index shows as a shorter state with more matches.

    >>> load = route_load("A", RouteWork(("B", "C"), 10, (500, 2_500), (50, 500))).load
    >>> load.steps[0], load.partials, load.compared
    (ProbingStep(rows=50.0, selectivity=0.1), [1.0, 5.0], 300.0)
    """
    partials, found = (work.rows, *(work.partials or work.matches[:-1])), list[ProbingStep]()
    for come, compared, matched in zip(partials, work.comparisons, work.matches, strict=True):
        found.append(ProbingStep(compared / come if come else 0.0, matched / compared if compared else 0.0))
    return RouteLoad(label, work.order, work.rows / steps, RingLoad(tuple(found)))


def _fastest(streams: list[str], cost: Cost) -> int:
    # The least number of nodes that takes in almost as many rows a second as the most do (Eq. 13.4).
    at = {nodes: cost(dict.fromkeys(streams, nodes)) for nodes in range(1, MOST_CHOSEN + 1)}
    return next(nodes for nodes, seconds in at.items() if seconds <= WORTH * at[MOST_CHOSEN])


def _over(manifest: Manifest, name: str, lengths: Mapping[str, int]) -> NodeSpread:
    # From this step on.
    entry, nodes = manifest.queries[name], max(lengths.values())
    spread = entry.nodes
    assert spread is not None
    routes = [route_load(label, one) for label, one in spread.routes.items()]
    unequal = min(lengths.values()) < nodes
    fresh = NodeSpread(
        spread.scheme, nodes, manifest.step, auto=True, objective=spread.objective, master=spread.master,
        segment=spread.segment, copies=min(spread.copies, nodes), count_bound=spread.count_bound,
        cuts=spread.cuts, rings=rings_of(routes, MEASURED, lengths) if unequal else {}, regrouped=spread.regrouped,
        alone=spread.alone,
    )  # fmt: skip
    begun = begun_slices(query_of(entry), fresh)
    return carried_over(manifest, entry, begun, AGGRESSIVE, "nodes")
