"""The nodes of a query whose user leaves their number to the cost model (Wang ch. 13), and which ages each has.

Nodes of a ring have equally many pairs to compare (§13.4). Where queries with other windows and selections share it,
what was counted says where to cut (§21.3). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from midstream.logical.query import query_of
from midstream.model.events import Event, QuerySpread
from midstream.model.manifest import Manifest
from midstream.model.node_spread import NodeSpread, RouteWork
from midstream.ring.cost import ProbingStep, RingCosts, RingLoad
from midstream.ring.deploy import begun_slices, windows_of
from midstream.ring.deployment import parts_of
from midstream.ring.lengths import Cost, RouteLoad, busiest, by_matches, lengths_for, mean_latency, rings_of
from midstream.ring.relocate import AGGRESSIVE, carried_over
from midstream.ring.ring_members import all_spread, mates_of, spread_queries
from midstream.ring.spreading import spreading

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
    partials, found = (work.rows, *work.matches[:-1]), list[ProbingStep]()
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
