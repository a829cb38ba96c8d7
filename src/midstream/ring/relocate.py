"""Nodes come to a running ring or leave it: rows are listed elsewhere at once, or run out (Wang §14.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from midstream.logical.query import Query, query_of
from midstream.model.errors import PlanError
from midstream.model.manifest import Manifest, QueryEntry
from midstream.model.node_spread import NodeSpread, SourceSlices
from midstream.plan.signature import canonical
from midstream.ring.deploy import NO_SLICES, slice_length, slices_of, table_of, windows_of
from midstream.ring.slice_table import SliceTable
from midstream.ring.spreading import spreading


@dataclass(frozen=True)
class Relocation:
    """A ring of `nodes` equal slices to which `added` nodes come; slices are measured in those of the longer ring."""

    nodes: int
    added: int

    def passed_on(self) -> list[Fraction]:
        """Compute Delta S_i for each node from the head on: what it passes on to its next node, old or new.

        >>> [str(part) for part in Relocation(3, 1).passed_on()]
        ['1/3', '2/3', '0']
        """
        shares = [Fraction(self.added, self.nodes) * at for at in range(1, self.nodes + 1)]
        return [share - int(share) for share in shares]

    def behind(self) -> list[int]:
        """Find for each new node the old one behind which it is inserted, the first that can fill it; counted from 1.

        >>> Relocation(3, 1).behind(), Relocation(2, 3).behind()
        ([3], [1, 2, 2])
        """
        return [-(-self.nodes * new // self.added) for new in range(1, self.added + 1)]

    def order(self) -> list[int | None]:
        """List the longer ring from head to tail: old nodes by their place, counted from 1, new ones as None.

        >>> Relocation(2, 3).order()
        [1, None, 2, None, None]
        """
        behind = self.behind()
        return [node for old in range(1, self.nodes + 1) for node in (old, *[None] * behind.count(old))]


def ring_of(ring: Sequence[int], nodes: Sequence[int]) -> tuple[int, ...]:
    """Order a ring of other `nodes`, from the head on, than it has.

    New nodes are inserted where they can be filled; the others of the ring leave.

    >>> ring_of((0, 1), range(5)), ring_of((0, 2, 1, 3, 4), range(2)), ring_of((0, 1, 2), (2, 3))
    ((0, 2, 1, 3, 4), (0, 1), (2, 3))
    """
    kept, coming = [node for node in ring if node in nodes], [node for node in nodes if node not in ring]
    if not kept or not coming:
        return (*kept, *coming)
    new = iter(coming)
    order = Relocation(len(kept), len(coming)).order()
    return tuple(next(new) if place is None else kept[place - 1] for place in order)


def relocated(
    table: SliceTable, ring: Sequence[int], nodes: Sequence[int], length: int, bounded: bool = False
) -> tuple[SliceTable, tuple[int, ...]]:
    """Cut a state slice table for other nodes: every node passes rows on to its neighbour.

    `ring` are the nodes until then and `length` is that of their slices, by which the head ends in time to come, but
    where slices are `bounded` by count. The slices of a round of the ring become as many as there are nodes then, each
    cut where its share of time is.

    >>> table, ring = relocated(SliceTable((0, 40, 80), (2, 1, 0), newest=110), (0, 1, 2), range(4), 40)
    >>> table.starts, table.nodes, ring
    ((0, 30, 60, 90), (3, 2, 1, 0), (0, 1, 2, 3))
    """
    head = list(ring).index(table.nodes[-1])
    new = ring_of((*ring[head:], *ring[:head]), nodes)
    before, after, starts = len(ring), len(new), table.starts[::-1]
    newest = max(table.newest, starts[0])
    ends = (newest + 1 if bounded else max(starts[0] + length, newest + 1), *starts)
    cuts = []
    for place in range(1, -(-len(starts) * after // before) + 1):
        # In which slice, counted from the head, the new one begins, and which part of it, in n-ths, is the new one's.
        slices = min(-(-place * before // after), len(starts))
        part = min(place * before - (slices - 1) * after, after)
        end, start = ends[slices - 1], starts[slices - 1]
        cuts.append((end - (end - start) * part // after, new[(place - 1) % after]))
    begun = [cut for cut in cuts if cut[0] <= newest][::-1]
    return SliceTable(tuple(start for start, _ in begun), tuple(node for _, node in begun), 0, table.newest), new


RELOCATION = "relocation"
"""The option of every spread that says how the nodes of a running query come and go."""

AGGRESSIVE, PASSIVE = "aggressive", "passive"
"""Chunks are listed at their new nodes at once, by Eq. 14.1; or new rows alone go by the new nodes."""

WAYS = (AGGRESSIVE, PASSIVE)


def relocation_of(options: Mapping[str, Any], place: str) -> tuple[str, dict[str, Any]]:
    """Take the way of relocation out of the options of a spread, aggressive unless one is named.

    Returns: the way, and the other options.
    """
    way = options.get(RELOCATION, AGGRESSIVE)
    if way not in WAYS:
        raise PlanError(f"unknown relocation {way!r}", place=place, remedy=f"use one of: {', '.join(WAYS)}")
    return way, {name: value for name, value in options.items() if name != RELOCATION}


def carried_over(manifest: Manifest, entry: QueryEntry, spread: NodeSpread, way: str, place: str) -> NodeSpread:
    """Make the spread of a running query from this step on, with what it takes over from its nodes until now."""
    former = entry.nodes
    if former is not None and former.since == manifest.step:
        # It was spread so in this very step: no row lies by it yet.
        former = former.before
    if way == PASSIVE and entry.nodes is None:
        raise PlanError(
            "a query in lanes cannot use passive relocation, because it has no nodes yet", place=place,
            remedy=f"use relocation {AGGRESSIVE}, which is the default",
        )  # fmt: skip
    moment, began = (None, manifest.step) if entry.nodes is None else (entry.nodes.moment, entry.nodes.began)
    spread = replace(spread, moment=moment, began=began)
    if former is None or spread.moment is None:
        return spread
    query = canonical(query_of(entry))[0]
    if way == PASSIVE:
        return _running_out(query, spread, former, spread.moment + 1)
    return _cut_anew(query, spread, former) if former.scheme == spread.scheme else spread


def _running_out(query: Query, spread: NodeSpread, former: NodeSpread, begins: int) -> NodeSpread:
    # The head goes on to the new nodes, then to the present tail.
    former = replace(former, work=(), sent=(), bytes=(), moved=0, auto=False)
    slices, rings = dict(spread.slices), dict(spread.rings)
    if spreading(spread.scheme).keeps_slices:
        for label in query.aliases:
            tail_first = _ring(former, label)[::-1]
            coming = [node for node in range(spread.nodes) if node not in tail_first]
            heads = [*coming, *(node for node in tail_first if node < spread.nodes)]
            slices[label] = SourceSlices((begins,), (heads[0],), newest=begins - 1)
            rings[label] = tuple(heads[::-1])
    return replace(spread, slices=slices, rings=rings, begins=begins, before=former)


def _cut_anew(query: Query, spread: NodeSpread, former: NodeSpread) -> NodeSpread:
    # By Eq. 14.1.
    chosen, windows = spreading(spread.scheme), windows_of(query)
    if chosen.ages:
        return replace(spread, rings={label: ring_of(_ring(former, label), spread.ring(label)) for label in windows})
    slices, rings = dict[str, SourceSlices](), dict(spread.rings)
    for label, known in former.slices.items() if chosen.keeps_slices else ():
        if known != NO_SLICES:
            length, bounded = slice_length(windows[label], former, label), bool(former.count_bound)
            ring = _ring(former, label)
            table, rings[label] = relocated(table_of(known), ring, spread.ring(label), length, bounded)
            slices[label] = slices_of(table)
    return replace(spread, slices={**spread.slices, **slices}, rings=rings)


def _ring(spread: NodeSpread, label: str) -> tuple[int, ...]:
    # Where rows stay where they came, the ring begins with the first slice of all.
    ring = spread.ring(label)
    known = spread.slices.get(label, NO_SLICES)
    at = ring.index(known.nodes[-1]) if known != NO_SLICES else 0
    return (*ring[at:], *ring[:at])
