"""The operators that run a query, as a graph: what two plans share is one node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from midstream.checkpoint.report_values import Report
from midstream.checkpoint.running import lanes_of_group, running_boxes, state_names
from midstream.migration.under_way.transition import Transition
from midstream.model.counters import Counters
from midstream.model.ids import CounterKey
from midstream.model.manifest import Manifest, StateListing
from midstream.operators.source import SourceOperator
from midstream.runtime.box import Box
from midstream.runtime.operator import Operator
from midstream.state.specs import StateSpec
from midstream.step.program import unit_of

OLD, NEW = "old", "new"

NODES_SHOWN = 80
"""Operators of a graph; a chain of a thousand queries may have more."""


def plan_graph(manifest: Manifest, report: Report, name: str, earlier: Manifest | None = None) -> dict[str, Any]:
    """Describe the operators of a query, or of its chain, as JSON values; `left_out` counts those beyond the first.

    `nodes`: `id`; `kind` (source, join, transition or other); `label`; `sources`; `plans` that it is part of, `old`,
    `new` or both (none without a migration); counters since it began, and those since the `earlier` manifest as
    `recent`; `selectivity`, rows out for a row in; `share` of all comparisons, recent ones where there are any;
    `states` that it keeps: `id`, `name`, `rows`, `lanes` (the rows in each), `plans`, `complete` (False: one of a plan
    in transition, which lacks old rows yet), `of` (the node whose output it holds). `edges`: `from` a node `to` the one
    that takes its output. `places`: what each lane holds.
    """
    unit = unit_of(manifest, name)
    boxes = running_boxes(manifest, unit)
    found, plans = _operators(boxes)
    shown = dict(list(found.items())[-NODES_SHOWN:])
    work = _work(found, unit.group, report, earlier)
    lanes = lanes_of_group(manifest, unit.group)
    names = state_names(unit, boxes)
    listings = [lane.states for lane in lanes.values()]
    nodes = [
        {
            "id": id,
            "kind": _kind(operator),
            "label": operator.describe(),
            "sources": sorted(operator.labels),
            "plans": sorted(plans[id]),
            **work[id],
            "states": [
                _state(spec, str(producer.id), names.get(spec.id, spec.id), listings, plans[id])
                for producer, spec in operator.states()
            ],
        }
        for id, operator in shown.items()
    ]
    _share_states(nodes)
    return {
        "nodes": nodes,
        "edges": _edges(shown),
        "left_out": len(found) - len(shown),
        "places": [
            {"name": str(lane), "rows": sum(one.live for id, one in listed.items() if id in names)}
            for lane, listed in zip(lanes, listings, strict=True)
        ],
        "since": None if earlier is None else earlier.step,
    }


def _operators(boxes: Sequence[Box]) -> tuple[dict[str, Operator], dict[str, set[str]]]:
    # Children first.
    found: dict[str, Operator] = {}
    plans: dict[str, set[str]] = {}
    for box in boxes:
        for root in box.operators():
            for operator, plan in _walk(root, ""):
                found.setdefault(str(operator.id), operator)
                plans.setdefault(str(operator.id), set()).update({plan} - {""})
    return found, plans


def _work(
    found: Mapping[str, Operator], group: str, report: Report, earlier: Manifest | None
) -> dict[str, dict[str, Any]]:
    counted = {id: report.counted(group, operator.id) for id, operator in found.items()}
    basis = {id: vars(counters) for id, counters in counted.items()}
    recent: dict[str, dict[str, int]] = {}
    if earlier is not None:
        before = {id: earlier.operators.get(CounterKey(group, op.id), Counters()) for id, op in found.items()}
        recent = {id: _difference(counters, before[id]) for id, counters in counted.items()}
    if any(one["comparisons"] for one in recent.values()):
        basis = recent
    comparisons = sum(one["comparisons"] for one in basis.values())
    return {
        id: {
            "counters": vars(counted[id]),
            "recent": recent.get(id),
            "selectivity": _ratio(one["rows_out"], one["rows_in"]),
            "share": _ratio(one["comparisons"], comparisons),
        }
        for id, one in basis.items()
    }


def _edges(shown: Mapping[str, Operator]) -> list[dict[str, str]]:
    return [
        {"from": str(child.id), "to": id}
        for id, operator in shown.items()
        for child in operator.children()
        if str(child.id) in shown
    ]


def _walk(operator: Operator, plan: str) -> Iterator[tuple[Operator, str]]:
    # Children first, with the plan of the innermost migration that each is part of.
    if isinstance(operator, Transition):
        if operator.old is not None:
            yield from _walk(operator.old, OLD)
        yield from _walk(operator.new, NEW)
    else:
        for child in operator.children():
            yield from _walk(child, plan)
    yield operator, plan


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


def _state(spec: StateSpec, producer: str, name: str, listings: Sequence[Any], plans: set[str]) -> dict[str, Any]:
    rows = [listed.get(spec.id, StateListing()).live for listed in listings]
    return {
        "id": spec.id, "name": name, "of": producer, "rows": sum(rows), "lanes": rows,
        "plans": sorted(plans), "complete": not spec.signature.view,
    }  # fmt: skip


def _share_states(nodes: list[dict[str, Any]]) -> None:
    # A state that operators of both plans keep is of both.
    plans: dict[str, set[str]] = {}
    for node in nodes:
        for state in node["states"]:
            plans.setdefault(state["id"], set()).update(state["plans"])
    for node in nodes:
        for state in node["states"]:
            state["plans"] = sorted(plans[state["id"]])
