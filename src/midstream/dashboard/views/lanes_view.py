"""How evenly the work lies: what each lane holds and does, state by state, and each node of a join that is spread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from midstream.checkpoint.running_states import lanes_of_group, running_boxes, state_names
from midstream.dashboard.job_reading import JobReading
from midstream.dashboard.view import DashboardView
from midstream.explain.nodes import node_values
from midstream.model.manifest import StateListing
from midstream.units.program import compile_program

GROUPS_SHOWN, LANES_SHOWN, STATES_SHOWN, QUERIES_SHOWN, RINGS_SHOWN, SLICES_SHOWN = 8, 64, 24, 20, 8, 4
"""So many are shown of each; the largest states, the groups of the most rows, the newest slices of a node."""


def lanes(reading: JobReading, options: Mapping[str, str]) -> dict[str, Any]:
    """Show how evenly the work lies on lanes and nodes.

    `lanes`: their number; `lane_review`: what was decided about it, as in the report.

    `groups`, those of most rows first: `name`; `queries`: their number, and the first; `lanes`: of each the `number`,
    and as lists of one number for each lane in `figures` what it holds and does: `name`, `unit` (rows, bytes, chunks or
    nanoseconds), `values`. `rings`: the queries that are spread over nodes, as `explain.nodes` has them, those that
    share nodes once: `name`, `spread` and the rest, of each node only some `slices`. What is not shown is counted in
    `groups_left_out`, `lanes_left_out`, `states_left_out`, `rings_left_out`.
    """
    report = reading.report
    rows: dict[str, int] = {}
    for id in reading.manifest.lane_states:
        rows[id.group] = rows.get(id.group, 0) + report.by_lane[str(id)].rows
    names = sorted(rows, key=lambda name: (-rows[name], name))
    rings = _rings(reading)
    return {
        "lanes": report.lanes,
        "lane_review": report.lane_review.to_json(),
        "groups": [_group(reading, name) for name in names[:GROUPS_SHOWN]],
        "groups_left_out": max(0, len(names) - GROUPS_SHOWN),
        "rings": [_ring(reading, name) for name in rings[:RINGS_SHOWN]],
        "rings_left_out": max(0, len(rings) - RINGS_SHOWN),
    }


def _group(reading: JobReading, name: str) -> dict[str, Any]:
    manifest, by_lane = reading.manifest, reading.report.by_lane
    every = sorted(lanes_of_group(manifest, name).items(), key=lambda one: one[0].number)
    shown = every[:LANES_SHOWN]
    reports = [by_lane[str(id)] for id, _ in shown]
    load = manifest.lane_optimization.load.work
    figures = [
        ("rows held", "rows", [one.rows for one in reports]),
        ("bytes held", "bytes", [one.bytes for one in reports]),
        ("chunks", "chunks", [one.chunks for one in reports]),
    ]
    if any(id in load for id, _ in shown):
        figures.append(("work since the last review", "nanoseconds", [round(load.get(id, 0.0)) for id, _ in shown]))
    called = _state_names(reading, name)
    states = {
        id: [lane.states.get(id, StateListing()).live for _, lane in shown] for _, lane in every for id in lane.states
    }
    largest = sorted(states, key=lambda id: (-sum(states[id]), id))
    figures += [(called.get(id, id), "rows", states[id]) for id in largest[:STATES_SHOWN]]
    queries = [query for query, entry in manifest.queries.items() if entry.group == name]
    return {
        "name": name,
        "queries": {"count": len(queries), "first": queries[:QUERIES_SHOWN]},
        "lanes": [{"number": id.number} for id, _ in shown],
        "figures": [{"name": called, "unit": unit, "values": values} for called, unit, values in figures],
        "lanes_left_out": len(every) - len(shown),
        "states_left_out": max(0, len(largest) - STATES_SHOWN),
    }


def _state_names(reading: JobReading, group: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for unit in compile_program(reading.manifest, group, {}).units:
        found |= state_names(unit, running_boxes(reading.manifest, unit))
    return found


def _rings(reading: JobReading) -> list[str]:
    # Of queries that share nodes, the first.
    found, seen = [], set[str]()
    for name, query in reading.report.queries.items():
        if query.nodes is not None and name not in seen:
            found.append(name)
            seen |= {name, *query.nodes_with}
    return found


def _ring(reading: JobReading, name: str) -> dict[str, Any]:
    value = node_values(reading.manifest, name)
    nodes = [
        {**one, "slices": {label: list(own)[-SLICES_SHOWN:] for label, own in one["slices"].items()}}
        for one in value["nodes"][:LANES_SHOWN]
    ]
    left_out = len(value["nodes"]) - len(nodes)
    return {
        "name": name,
        "spread": reading.report.query(name).spread,
        **value,
        "nodes": nodes,
        "nodes_left_out": left_out,
    }


VIEW = DashboardView("lanes", "Lanes and nodes", lanes, order=50)
