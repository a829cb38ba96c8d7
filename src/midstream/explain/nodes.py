"""The nodes that a query is spread over: which slices each has, what it holds, what it did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from midstream.model.manifest import Manifest
from midstream.model.node_spread import NodeSpread, NodeWork
from midstream.model.words import counted, size_text, span_text, time_text
from midstream.ring.columns import Words
from midstream.ring.deploy import deployment_of
from midstream.ring.lengthening import foresee
from midstream.ring.ring_members import mates_of
from midstream.ring.spreading import spreading
from midstream.units.program import unit_of

SLICES_SHOWN = 3
"""So many slices of a source at a node are drawn; as JSON there are all."""


def node_values(manifest: Manifest, name: str) -> dict[str, Any]:
    """Describe the nodes of a query as JSON values: comparisons and visits are those since the spread began.

    `balance` is the comparisons of the busiest node against the mean, `sent` the visits of partial results by hop, and
    `bytes` the size of their values. `routes` has for each source what its new rows did: their `order`, how many came,
    and comparisons and matches by hop. `foreseen` has the mean seconds from a step's rows to one of their results by
    the cost model, with these nodes and with the `best` number of them, and the lengths of the sources' rings.
    `running_out` are the spreads before whose rows have not run out, and up to which event time those are. A node's
    `orders` are the probing orders by which its partial results go on other than the plan says.
    """
    entry = manifest.queries[name]
    assert entry.nodes is not None
    spread, query = entry.nodes, unit_of(manifest, name).query
    work = spread.work or (NodeWork(),) * spread.reach
    slices = _slices(spread, deployment_of(query, spread).slice_ends, tuple(query.aliases))
    return {
        "scheme": spread.scheme,
        "queries": sorted([name, *mates_of(manifest, name)]),
        "since": spread.since,
        "balance": spread.balance,
        "sent": list(spread.sent),
        "bytes": list(spread.bytes),
        "foreseen": _foreseen(manifest, name),
        "routes": {label: asdict(one) for label, one in spread.routes.items()},
        "moved": spread.moved,
        "running_out": [
            {"until": now.begins, "nodes": one.nodes, "scheme": one.scheme}
            for now, one in zip(spread.all, spread.all[1:], strict=False)
        ],
        "nodes": [
            {
                "rows": one.rows,
                "comparisons": one.comparisons,
                "visits": one.visits,
                "slices": slices[number],
                "orders": _orders(spread, number),
            }
            for number, one in enumerate(work)
        ],
    }


def _foreseen(manifest: Manifest, name: str) -> dict[str, Any] | None:
    found = foresee(manifest, name, manifest.step + 1)
    if found is None:
        return None
    return {
        "nodes": max(found.lengths.values()), "seconds": found.seconds, "lengths": found.lengths,
        "best": max(found.best.values()), "best_seconds": found.best_seconds, "best_lengths": found.best,
    }  # fmt: skip


def draw_nodes(value: dict[str, Any]) -> list[str]:
    """Draw the nodes in lines, one for each."""
    busiest = "" if value["balance"] is None else f", busiest node {value['balance']:.2f} times the mean"
    hops = zip(value["sent"], value["bytes"], strict=False)
    sent = ", ".join(f"{visits:,} ({size_text(size)})" for visits, size in hops) or "none"
    lines = [f"nodes {value['scheme']} since step {value['since']}{busiest}; visits by hop: {sent}"]
    for number, node in enumerate(value["nodes"]):
        held = f"{counted(node['rows'], 'row')}, {node['comparisons']:,} comparisons, {node['visits']:,} visits"
        own = "; ".join(f"{label} {_shown(parts)}" for label, parts in node["slices"].items() if parts)
        orders = " | ".join(f"{label}: {' '.join(order)}" for label, order in node["orders"].items())
        lines.append(f"  node {number}: {held}{f'; {own}' if own else ''}{f'; by [{orders}]' if orders else ''}")
    if (found := value["foreseen"]) is not None:
        lines.append(
            f"  foreseen: results {1000 * found['seconds']:,.2f} ms after a step's rows; "
            f"soonest with {_lengths(found['best_lengths'])}, {1000 * found['best_seconds']:,.2f} ms"
        )
    for one in value["running_out"]:
        lines.append(f"  rows before {time_text(one['until'])} run out on {one['nodes']} nodes by {one['scheme']}")
    return lines


def _orders(spread: NodeSpread, node: int) -> dict[str, list[str]]:
    planned = {label: route.order for label, route in spread.routes.items()}
    own = {label: each[node] for label, each in spread.orders.items() if node < len(each)}
    return {label: list(order) for label, order in own.items() if order != planned.get(label)}


def _lengths(lengths: dict[str, int]) -> str:
    if len(set(lengths.values())) == 1:
        return counted(max(lengths.values()), "node")
    return f"rings of {', '.join(f'{nodes} for {label}' for label, nodes in sorted(lengths.items()))}"


def _shown(slices: list[str]) -> str:
    # Of many slices the oldest and the newest.
    if len(slices) <= SLICES_SHOWN:
        return ", ".join(slices)
    return f"{slices[0]}, {len(slices) - 2} more, {slices[-1]}"


def _slices(spread: NodeSpread, ends: Callable[[str], Words], labels: tuple[str, ...]) -> list[dict[str, list[str]]]:
    # As ages, or as times from which on; empty where no time decides.
    chosen = spreading(spread.scheme)
    found: list[dict[str, list[str]]] = [{} for _ in range(spread.reach)]
    for label in labels if chosen.ages else ():
        bounds = [0, *ends(label).tolist()]
        for node, begin in zip(spread.ring(label), bounds, strict=True):
            found[node][label] = [f"from age {span_text(begin)}"]
    for label, slices in spread.slices.items() if chosen.keeps_slices else ():
        for start, node in zip(slices.starts, slices.nodes, strict=True):
            found[node].setdefault(label, []).append(f"from {time_text(start)}")
    return found
