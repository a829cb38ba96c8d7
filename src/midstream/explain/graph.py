"""The operators that run a query, as a graph: what two plans share is one node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from midstream.checkpoint.report_values import Report
from midstream.checkpoint.running import lanes_of_group, running_boxes, state_names
from midstream.migration.under_way.transition import Transition
from midstream.model.counters import Counters
from midstream.model.ids import CounterKey
from midstream.model.manifest import Manifest, StateListing
from midstream.operators.source import SourceOperator
from midstream.runtime.operator import Operator
from midstream.state.specs import StateSpec
from midstream.step.program import unit_of

OLD, NEW = "old", "new"

NODES_SHOWN = 80
"""Operators of a graph; a chain of a thousand queries may have more."""


def plan_graph(manifest: Manifest, report: Report, name: str, earlier: Manifest | None = None) -> dict[str, Any]:
    """The operators of a query, or of the chain that runs it, as JSON values; `left_out` counts those beyond the first.

    `nodes`: `id`; `kind` (source, join, transition or other); `label`; `sources`; `plans` that it is part of, `old`,
    `new` or both (none without a migration); counters since it began, and those since the `earlier` manifest as
    `recent`; `selectivity`, rows out for a row in; `share` of all comparisons, recent ones where there are any;
    `states` that it keeps: `id`, `name`, `rows`, `lanes` (the rows in each), `plans`, `complete` (False: one of a plan
    in transition, which lacks old rows yet), `of` (the node whose output it holds). `edges`: `from` a node `to` the one
    that takes its output. `places`: what each lane holds.
    """
    unit = unit_of(manifest, name)
    boxes = running_boxes(manifest, unit)
    sides: dict[str, set[str]] = {}
    found: dict[str, Operator] = {}
    for box in boxes:
        for root in box.operators():
            for operator, side in _walk(root, ""):
                found.setdefault(str(operator.id), operator)
                sides.setdefault(str(operator.id), set()).update({side} - {""})
    shown = dict(list(found.items())[-NODES_SHOWN:])
    key = {id: CounterKey(unit.group, operator.id) for id, operator in found.items()}
    counted = {id: report.operators.get(key[id], Counters()) for id in found}
    known = manifest.operators if earlier is None else earlier.operators
    before = {id: known.get(key[id], Counters()) for id in found}
    recent = {id: _difference(counted[id], before[id]) for id in found}
    basis = recent if any(one["comparisons"] for one in recent.values()) else {i: vars(c) for i, c in counted.items()}
    whole = sum(one["comparisons"] for one in basis.values())
    lanes = lanes_of_group(manifest, unit.group)
    names = state_names(unit, boxes)
    listings = [lane.states for lane in lanes.values()]
    nodes = [
        {
            "id": id,
            "kind": _kind(operator),
            "label": operator.describe(),
            "sources": sorted(operator.labels),
            "plans": sorted(sides[id]),
            "counters": vars(counted[id]),
            "recent": None if earlier is None else recent[id],
            "selectivity": _ratio(basis[id]["rows_out"], basis[id]["rows_in"]),
            "share": _ratio(basis[id]["comparisons"], whole),
            "states": [
                _state(spec, str(producer.id), names.get(spec.id, spec.id), listings, sides[id])
                for producer, spec in operator.states()
            ],
        }
        for id, operator in shown.items()
    ]
    _share_states(nodes)
    return {
        "nodes": nodes,
        "edges": [
            {"from": str(child.id), "to": id}
            for id, operator in shown.items()
            for child in operator.children()
            if str(child.id) in shown
        ],
        "left_out": len(found) - len(shown),
        "places": [
            {"name": str(lane), "rows": sum(one.live for id, one in listed.items() if id in names)}
            for lane, listed in zip(lanes, listings, strict=True)
        ],
        "since": None if earlier is None else earlier.step,
    }


def _walk(operator: Operator, side: str) -> Iterator[tuple[Operator, str]]:
    """The operators from here down, children first, with the plan of the innermost migration that each is part of."""
    if isinstance(operator, Transition):
        if operator.old is not None:
            yield from _walk(operator.old, OLD)
        yield from _walk(operator.new, NEW)
    else:
        for child in operator.children():
            yield from _walk(child, side)
    yield operator, side


def _kind(operator: Operator) -> str:
    if isinstance(operator, Transition):
        return "transition"
    if isinstance(operator, SourceOperator):
        return "source"
    return "join" if len(operator.children()) > 1 else "other"


def _difference(now: Counters, before: Counters) -> dict[str, int]:
    return {name: max(0, value - getattr(before, name)) for name, value in vars(now).items()}


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _state(spec: StateSpec, producer: str, name: str, listings: Sequence[Any], sides: set[str]) -> dict[str, Any]:
    rows = [listed.get(spec.id, StateListing()).live for listed in listings]
    return {
        "id": spec.id, "name": name, "of": producer, "rows": sum(rows), "lanes": rows,
        "plans": sorted(sides), "complete": not spec.signature.view,
    }  # fmt: skip


def _share_states(nodes: list[dict[str, Any]]) -> None:
    """A state that operators of both plans keep is of both."""
    plans: dict[str, set[str]] = {}
    for node in nodes:
        for state in node["states"]:
            plans.setdefault(state["id"], set()).update(state["plans"])
    for node in nodes:
        for state in node["states"]:
            state["plans"] = sorted(plans[state["id"]])
