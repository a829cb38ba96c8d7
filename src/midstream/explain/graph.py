"""The operators that run a query, as a graph: what two plans share is one node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from midstream.checkpoint.report_values import Report
from midstream.checkpoint.running_states import lanes_of_group, running_boxes, state_names
from midstream.migration.under_way.transition import Transition
from midstream.model.counters import Counters
from midstream.model.ids import CounterKey
from midstream.model.manifest import Manifest, StateListing
from midstream.operators.source import SourceOperator
from midstream.optimizer.cost.units import JoinUnitCosts
from midstream.runtime.box import Box
from midstream.runtime.operator import Operator
from midstream.state.specs import StateSpec
from midstream.units.program import unit_of

OLD, NEW = "old", "new"

NODES_SHOWN = 80
"""Operators of a graph; a chain of a thousand queries may have more."""


def plan_graph(manifest: Manifest, report: Report, name: str, earlier: Manifest | None = None) -> dict[str, Any]:
    """Describe the operators of a query, or of its chain, as JSON values; `left_out` counts those beyond the first.

    `nodes`: `id`; `kind` (source, join, transition or other); `label`; `sources`; `streams`, the stream behind each of
    them; `plans` that it is part of, `old`, `new` or both (none without a migration); `counters` since it began, and
    `figures`, the same counters of all nodes over one span: since the step `since`, or since each began where that is
    None. From the figures are `selectivity`, rows out for a row in; `share` of all comparisons; `work`, nanoseconds by
    unit costs. `states` that it keeps: `id`, `name`, `rows`, `bytes`, `lanes` (the rows in each), `plans`, `complete`
    (False: one of a plan in transition, which lacks old rows yet), `of` (the node whose output it holds). `edges`:
    `from` a node `to` the one that takes its output. `places`: what each lane holds. `steps`: those of the span.
    `aliases`: of each alias in the query's text its `stream`, and the `label` that boxes have.
    """
    unit = unit_of(manifest, name)
    boxes = running_boxes(manifest, unit)
    found, plans = _operators(boxes)
    shown = dict(list(found.items())[-NODES_SHOWN:])
    since = earlier if earlier is not None and _anything_done(found, unit.group, report, earlier) else None
    work = _work(found, unit.group, report, since)
    streams = {source.alias: source.stream for source in unit.query.sources}
    lanes = lanes_of_group(manifest, unit.group)
    names = state_names(unit, boxes)
    listings = [lane.states for lane in lanes.values()]
    nodes = [
        {
            "id": id,
            "kind": _kind(operator),
            "label": operator.describe(),
            "sources": sorted(operator.labels),
            "streams": [streams.get(label, label) for label in sorted(operator.labels)],
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
        "since": None if since is None else since.step,
        "steps": manifest.step - (manifest.queries[name].since - 1 if since is None else since.step),
        "aliases": [
            {"alias": alias, "label": label, "stream": streams.get(label, label)}
            for alias, label in unit.labels_of(name).items()
        ],
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


def _anything_done(found: Mapping[str, Operator], group: str, report: Report, earlier: Manifest) -> bool:
    return any(
        report.counted(group, one.id) != earlier.operators.get(CounterKey(group, one.id), Counters())
        for one in found.values()
    )


def _work(
    found: Mapping[str, Operator], group: str, report: Report, since: Manifest | None
) -> dict[str, dict[str, Any]]:
    # All figures are of one span, so that no box contradicts another.
    counted = {id: report.counted(group, operator.id) for id, operator in found.items()}
    figures = {id: vars(counters) for id, counters in counted.items()}
    if since is not None:
        before = {id: since.operators.get(CounterKey(group, op.id), Counters()) for id, op in found.items()}
        figures = {id: _difference(counters, before[id]) for id, counters in counted.items()}
    comparisons = sum(one["comparisons"] for one in figures.values())
    return {
        id: {
            "counters": vars(counted[id]),
            "figures": one,
            "selectivity": _ratio(one["rows_out"], one["rows_in"]),
            "share": _ratio(one["comparisons"], comparisons),
            "work": None if isinstance(found[id], SourceOperator | Transition) else _nanoseconds(one),
        }
        for id, one in figures.items()
    }


def _nanoseconds(figures: Mapping[str, int]) -> float:
    units = JoinUnitCosts()
    joined = units.joining(figures["rows_in"], figures["comparisons"], figures["rows_out"])
    return joined + units.insert * figures["inserted"]


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
    own = [listed.get(spec.id, StateListing()) for listed in listings]
    rows = [one.live for one in own]
    return {
        "id": spec.id, "name": name, "of": producer, "rows": sum(rows), "lanes": rows,
        "bytes": sum(chunk.bytes for one in own for chunk in one.chunks),
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
