"""What a manifest says of its queries: plans, states, counters, migrations.

Read-only; the engine and the command line show it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from midstream.migration.base import PlanBox, states_of
from midstream.model.counters import Counters
from midstream.model.errors import QueryError
from midstream.model.manifest import Manifest
from midstream.operators.base import Operator
from midstream.operators.source import SourceOperator
from midstream.plan.pretty import draw
from midstream.step.conclude import state_bytes, state_rows
from midstream.step.lane_key import SINGLE
from midstream.step.names import operator_name
from midstream.step.plan_step import entry_of, lanes_of
from midstream.step.program import Unit, unit_of


def explain(manifest: Manifest, name: str, *, analyze: bool = False, format: str = "text") -> Any:
    """A query's text, plan, lanes and operators; with `analyze` their live counters. `format` is `text` or `json`."""
    if format not in ("text", "json"):
        raise QueryError(f"unknown format {format!r}", place="explain", remedy="use 'text' or 'json'")
    entry = entry_of(manifest, name)
    unit = unit_of(manifest, name)
    box = unit.box(entry.plan)
    value = {
        "query": name,
        "sql": entry.sql,
        "plan": entry.plan,
        "since": entry.since,
        "lanes": lanes_of(entry.group, manifest.lanes),
        "spread": "one lane: no common key" if entry.group == SINGLE else "by the common key",
        "migration": migration_progress(manifest, name),
        "operators": [_operator(manifest, entry.group, root, analyze) for root in box.roots],
    }
    if analyze:
        value["counters"] = entry.counters.to_json()
        value["states"] = _states(manifest, unit, box)
    return value if format == "json" else _text(value)


def migration_progress(manifest: Manifest, name: str) -> dict[str, Any] | None:
    """The running migration of a query as its lanes snapshot it, or None."""
    entry_of(manifest, name)
    boxes = {lane: state.boxes[name] for lane, state in manifest.lane_states.items() if name in state.boxes}
    running = {lane: dict(box) for lane, box in boxes.items() if box["box"] != "plan"}
    if not running:
        return None
    return {"query": name, "strategy": next(iter(running.values()))["box"], "lanes": running}


def metrics(manifest: Manifest) -> dict[str, Any]:
    """The engine's and each query's counters, and the size of the state now."""
    queries = {}
    for name, entry in manifest.queries.items():
        unit = unit_of(manifest, name)
        wanted = _state_ids(unit, unit.box(entry.plan))
        own = {
            lane: replace(state, states={k: v for k, v in state.states.items() if k in wanted})
            for lane, state in manifest.lane_states.items()
            if lane.rpartition(".")[0] == entry.group
        }
        part = replace(manifest, lane_states=own)
        queries[name] = _counters(replace(entry.counters, state_rows=state_rows(part), state_bytes=state_bytes(part)))
    whole = replace(manifest.totals, state_rows=state_rows(manifest), state_bytes=state_bytes(manifest))
    return {**_counters(whole), "queries": queries}


def _counters(counters: Counters) -> dict[str, Any]:
    return dict(vars(counters))


def _state_ids(unit: Unit, box: PlanBox) -> set[str]:
    ids = {spec.id for _, spec in states_of(box.roots)} | {spec.id for spec in unit.outlet.kept}
    ids |= {op.spec.id for root in box.roots for op in root.walk() if isinstance(op, SourceOperator)}
    return ids


def _states(manifest: Manifest, unit: Unit, box: PlanBox) -> dict[str, int]:
    wanted = _state_ids(unit, box)
    found: dict[str, int] = {}
    for name, lane in manifest.lane_states.items():
        for state_id, listing in lane.states.items():
            if state_id in wanted and name.rpartition(".")[0] == unit.group:
                found[state_id] = found.get(state_id, 0) + listing.live
    return found


def _operator(manifest: Manifest, group: str, operator: Operator, analyze: bool) -> dict[str, Any]:
    value: dict[str, Any] = {"operator": operator.describe()}
    if analyze:
        value["counters"] = manifest.operators.get(operator_name(f"{group}.", operator.id), Counters()).to_json()
    value["inputs"] = [_operator(manifest, group, child, analyze) for child in operator.children()]
    return value


def _text(value: dict[str, Any]) -> str:
    lanes = f"{value['lanes']} lane{'s' if value['lanes'] != 1 else ''}, {value['spread']}"
    lines = [f"query {value['query']}", f"plan  {value['plan']}", f"lanes {lanes}"]
    if value["migration"]:
        lines.append(f"migration by {value['migration']['strategy']} under way")
    lines += [draw(tree, _line, lambda node: node["inputs"]) for tree in value["operators"]]
    if "states" in value:
        lines.append("states")
        lines += [f"  {state_id}: {rows} rows" for state_id, rows in sorted(value["states"].items())]
    return "\n".join(lines)


def _line(node: dict[str, Any]) -> str:
    counters = node.get("counters")
    if counters is None:
        return str(node["operator"])
    shown = ", ".join(f"{name} {number}" for name, number in counters.items()) or "nothing yet"
    return f"{node['operator']}  ({shown})"
