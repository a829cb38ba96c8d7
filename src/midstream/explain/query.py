"""What a manifest says of its queries: plans, states, counters, migrations.

Read-only; the engine and the command line show it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from midstream.migration.base import Box, states_of
from midstream.migration.under_way.lasting import maker
from midstream.migration.under_way.running import restored
from midstream.migration.under_way.transition import Transition
from midstream.model.counters import Counters
from midstream.model.errors import QueryError
from midstream.model.manifest import Manifest, QueryEntry
from midstream.operators.base import Operator
from midstream.operators.source import SourceOperator
from midstream.operators.user_operator import OperatorSpec
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
    boxes = running_boxes(manifest, unit)
    value = {
        "query": name,
        "sql": entry.sql,
        "plan": entry.plan,
        "since": entry.since,
        "lanes": lanes_of(entry.group, manifest.lanes),
        "spread": _spread(entry),
        "migration": migration_progress(manifest, name),
        "operators": [_operator(manifest, entry.group, root, analyze) for root in boxes[0].operators()],
    }
    if entry.operator is not None:
        value["on_top"] = OperatorSpec.from_json(entry.operator).describe()
    if analyze:
        value["counters"] = entry.counters.to_json()
        value["states"] = _states(manifest, unit, boxes)
    return value if format == "json" else _text(value)


def _spread(entry: QueryEntry) -> str:
    if entry.operator is not None:
        return "one lane: a user's operator is on top"
    return "one lane: no common key" if entry.group == SINGLE else "by the common key"


def migration_progress(manifest: Manifest, name: str) -> dict[str, Any] | None:
    """The running migration of a query, or None: strategy, phase, what old and new plan serve, progress, predicted end.

    The end is in event time, in microseconds; it is None where only row counts or spare time decide it. `under_way` has
    all migrations of the query, oldest first: the newest began while the others ran.
    """
    records = entry_of(manifest, name).migrations
    if not records:
        return None
    under_way = [{"mark": mark, **record} for mark, record in records.items()]
    return {"query": name, **under_way[-1], "under_way": under_way}


def running_boxes(manifest: Manifest, unit: Unit) -> list[Box]:
    """What runs a query in its lanes, alike ones once; a migration may be over in some of them."""
    snapshots = [state.boxes[unit.name] for state in manifest.lane_states.values() if unit.name in state.boxes]
    begun = [snapshot for snapshot in snapshots if snapshot["box"] != "plan"]
    # What waits for the next step has not begun yet; the plan is shown that it leads to.
    return [restored(snapshot, unit.box, maker) for snapshot in begun] or [unit.box(unit.plan)]


def metrics(manifest: Manifest) -> dict[str, Any]:
    """The engine's and each query's counters, and the size of the state now."""
    queries = {}
    for name, entry in manifest.queries.items():
        unit = unit_of(manifest, name)
        wanted = set[str]().union(*(_state_ids(unit, box) for box in running_boxes(manifest, unit)))
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


def _state_ids(unit: Unit, box: Box) -> set[str]:
    operators = [op for root in box.operators() for op in root.walk()]
    ids = {spec.id for _, spec in states_of(box.operators())} | {spec.id for spec in unit.outlet.kept}
    return ids | {op.spec.id for op in operators if isinstance(op, SourceOperator)}


def _states(manifest: Manifest, unit: Unit, boxes: Sequence[Box]) -> dict[str, int]:
    wanted = set[str]().union(*(_state_ids(unit, box) for box in boxes))
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
    if isinstance(operator, Transition):
        parts = ["old plan"] * (operator.old is not None) + ["new plan"]
        value["inputs"] = [
            {"operator": part, "inputs": [tree]} for part, tree in zip(parts, value["inputs"], strict=True)
        ]
    return value


def _text(value: dict[str, Any]) -> str:
    lanes = f"{value['lanes']} lane{'s' if value['lanes'] != 1 else ''}, {value['spread']}"
    lines = [f"query {value['query']}", f"plan  {value['plan']}", f"lanes {lanes}"]
    lines += [f"on top {value['on_top']}"] if "on_top" in value else []
    lines += [_migration(record) for record in (value["migration"] or {}).get("under_way", ())]
    lines += [draw(tree, _line, lambda node: node["inputs"]) for tree in value["operators"]]
    if "states" in value:
        lines.append("states")
        lines += [f"  {state_id}: {rows} rows" for state_id, rows in sorted(value["states"].items())]
    return "\n".join(lines)


def _migration(record: dict[str, Any]) -> str:
    end = record.get("predicted_end")
    when = f", over when event time passes {datetime.fromtimestamp(end / 1e6, UTC):%Y-%m-%d %H:%M:%S}" if end else ""
    return (
        f"migration by {record['strategy']} to {record['plan']} since step {record['begun']}: {record.get('phase')}, "
        f"{record.get('progress', 0):.0%} done{when}\n  old plan: {record.get('old_serves')}\n"
        f"  new plan: {record.get('new_serves')}"
    )


def _line(node: dict[str, Any]) -> str:
    counters = node.get("counters")
    if counters is None:
        return str(node["operator"])
    shown = ", ".join(f"{name} {number}" for name, number in counters.items()) or "nothing yet"
    return f"{node['operator']}  ({shown})"
