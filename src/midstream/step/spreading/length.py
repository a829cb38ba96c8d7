"""Over how many nodes a query is spread whose user leaves it to the cost model (Wang ch. 13), and which ages each has.

Nodes of a ring have equally many pairs to compare (§13.4). Where queries with other windows and selections share it,
what was counted says where to cut (§21.3). Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from midstream.language.query import query_of
from midstream.model.counters import Counters
from midstream.model.events import Event, QuerySpread
from midstream.model.manifest import Manifest, QueryEntry
from midstream.model.node_spread import NodeSpread
from midstream.ring.cost import RingCosts, RingLoad, fastest, length, output_rate, result_latency
from midstream.ring.spreading import spreading
from midstream.step.spreading.deploy import begun_slices, windows_of
from midstream.step.spreading.relocate import AGGRESSIVE, carried_over
from midstream.step.spreading.ring_members import all_spread, mates_of, spread_queries

MEASURED = RingCosts(join=1.9e-08, insert=0, send=4.1e-07, hop=0.0025)
"""Seconds that operations of the nodes take: a pair compared, a row put in and taken out again, a visit of a partial
result, and what one more node adds to a step, however many rows there are.

Measured by `python -m benchmarks.ring.calibrate`, which prints this line anew for the machine it runs on.
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
"""Slices are cut anew where the busiest node compares so many times what the mean one does."""

LEAST_COMPARED = 1_000
"""Unless nodes have compared so many pairs each on average: what few did is chance."""

MOST_PIECES = 16
"""A node's share of a window is in so many slices at most where rows stay where they came."""


def lengthened(manifest: Manifest, events: list[Event]) -> Manifest:
    """Change the numbers of nodes of a step about to run where others are better by what was counted.

    Decided from counters alone, so that a step that is done again decides the same. Rows go over as by the command that
    spreads a query: none is copied, and no answer changes.
    """
    for name, spread in spread_queries(manifest).items():
        if not spread.auto or manifest.step == spread.since:
            continue
        entry = manifest.queries[name]
        if (manifest.step - spread.since) % STEPS_BETWEEN == 0 and (nodes := better(manifest, entry)) is not None:
            events.append(QuerySpread(manifest.step, name, spread.scheme, spread.scheme, nodes))
            manifest = all_spread(manifest, name, _over(manifest, entry, spread, nodes))
    return manifest


def evened(manifest: Manifest) -> Manifest:
    """Cut the slices of rings anew whose nodes had unequal work since the last look, once a whole window has come.

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
    done = np.subtract(compared, spread.weighed)
    if done.mean() < LEAST_COMPARED or done.max() <= EVEN * done.mean():
        return looked
    if not by_age:
        return replace(looked, pieces=min(2 * spread.pieces, MOST_PIECES))
    # Within a slice the work is taken to be even; where it is not, the next look cuts again.
    ring = next(iter(spread.rings.values()), tuple(range(spread.nodes)))
    work = np.append(0.0, np.cumsum(done[list(ring)]))
    ends = np.array([0.0, *(spread.cuts or np.arange(1, spread.nodes) / spread.nodes), 1.0])
    cuts = np.interp(np.arange(1, spread.nodes) / spread.nodes * work[-1], work, ends)
    return replace(looked, cuts=tuple(cuts.round(6).tolist()))


@dataclass(frozen=True)
class Foreseen:
    """What the cost model says of a query over nodes: the mean seconds from a step's rows to one of their results.

    With the `nodes` that it has, and with the `best` number.
    """

    nodes: int
    seconds: float
    best: int
    best_seconds: float


def better(manifest: Manifest, entry: QueryEntry) -> int | None:
    """Find the number of nodes with which results come soonest, if they come much sooner; None while nothing is
    known. Where the objective is the output rate, the number that a longer ring hardly exceeds (§13.2.1)."""
    counted, spread = _counted(manifest, entry), entry.nodes
    if spread is not None and spread.objective == RATE:
        if not counted.rows_in or not counted.comparisons:
            return None
        load = load_of(len(query_of(entry).sources), counted)
        best = fastest(load, MEASURED, MOST_CHOSEN)
        rates = [output_rate(load, MEASURED, nodes) for nodes in (spread.nodes, best)]
        return best if max(rates) > WORTH * min(rates) else None
    found = foreseen(manifest, entry, manifest.step)
    return found.best if found is not None and found.seconds > WORTH * found.best_seconds else None


def foreseen(manifest: Manifest, entry: QueryEntry, end: int) -> Foreseen | None:
    """Foresee the cost by what was counted before the step `end`; None while nothing is known."""
    counted = _counted(manifest, entry)
    if entry.nodes is None:
        return None
    steps = end - max(entry.since, entry.nodes.began or 0, entry.nodes.regrouped or 0)
    if steps < 1 or not counted.rows_in or not counted.comparisons:
        return None
    load = load_of(len(query_of(entry).sources), counted)
    # A step's rows wait for the nodes together.
    costs = replace(MEASURED, hop=MEASURED.hop * steps / counted.rows_in)
    now, best = entry.nodes.nodes, length(load, costs, MOST_CHOSEN)
    rows = counted.rows_in / steps
    return Foreseen(now, rows * result_latency(load, costs, now), best, rows * result_latency(load, costs, best))


def load_of(ways: int, counted: Counters) -> RingLoad:
    """Estimate what one row did along its probing order from what all did, with streams alike as in Eq. 13.2.

    A pair counts as in the state if it was compared, so that an index shows as a shorter state with more matches.

    >>> load = load_of(3, Counters(rows_in=10, comparisons=3_000, rows_out=300))
    >>> [round(step.rows, 6) for step in load.steps], load.steps[0].selectivity
    ([50.0, 50.0], 0.1)
    """
    each, selectivity = counted.comparisons / counted.rows_in, counted.rows_out / counted.comparisons
    least, most = 0.0, each
    for _ in range(80):
        middle = (least + most) / 2
        if RingLoad.alike(ways, middle, selectivity).compared < each:
            least = middle
        else:
            most = middle
    return RingLoad.alike(ways, most, selectivity)


def _counted(manifest: Manifest, entry: QueryEntry) -> Counters:
    found = Counters()
    for key, counters in manifest.operators.items():
        if key.group == entry.group and key.operator.kind == "multi_join":
            found += counters
    return found


def _over(manifest: Manifest, entry: QueryEntry, spread: NodeSpread, nodes: int) -> NodeSpread:
    # From this step on.
    fresh = NodeSpread(
        spread.scheme, nodes, manifest.step, auto=True, objective=spread.objective, master=spread.master,
        segment=spread.segment,
        copies=min(spread.copies, nodes), count_bound=spread.count_bound, regrouped=spread.regrouped,
        alone=spread.alone,
    )  # fmt: skip
    begun = begun_slices(query_of(entry), fresh)
    return carried_over(manifest, entry, begun, AGGRESSIVE, "nodes")
