"""Nodes come to a running ring or leave it: rows are listed elsewhere at once, or run out (Wang §14.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from midstream.logical.query import Query, query_of
from midstream.model.errors import PlanError
from midstream.model.manifest import Manifest, QueryEntry
from midstream.model.node_spread import NodeSpread, SourceSlices
from midstream.plan.signature import canonical
from midstream.ring.deploy import NO_SLICES, slice_length, slices_of, table_of, windows_of
from midstream.ring.relocation import relocated, ring_of
from midstream.ring.spreading import spreading

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
            "a query in lanes has no nodes whose rows could run out", place=place,
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
