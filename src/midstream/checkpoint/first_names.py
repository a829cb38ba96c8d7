"""The names that states had in the first manifests of format 1, before they told which arrivals a window counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from midstream.model.ids import StateId, StateKind
from midstream.model.manifest import LaneState, Manifest
from midstream.operators.arrival import pending_id
from midstream.step.program import compile_program
from midstream.step.query_unit import QueryUnit


def with_present_state_names(manifest: Manifest) -> Manifest:
    """The manifest with its base rows and queues under their present names.

    Other states that nobody finds under their name are computed again from base rows.
    """
    lanes = dict(manifest.lane_states)
    for group in {entry.group for entry in manifest.queries.values()}:
        names = _present_names(manifest, group)
        for id, lane in manifest.lane_states.items():
            if id.group == group and names.keys() & lane.states.keys():
                lanes[id] = _renamed(lane, names)
    return replace(manifest, lane_states=lanes)


def _present_names(manifest: Manifest, group: str) -> dict[StateId, StateId]:
    names = {}
    for unit in compile_program(manifest, group, {}).units:
        assert isinstance(unit, QueryUnit), "there were no chains in format 1"
        for label, rows in unit.binding.rows().items():
            former = replace(rows.signature, scope=unit.binding.scope)
            names[StateId(label, former.digest(), StateKind.ROWS.value)] = rows.id
        for stream in unit.streams:
            names[StateId(stream, unit.name, StateKind.QUEUE.value)] = pending_id(unit.name, unit.since, stream)
    return {former: present for former, present in names.items() if former != present}


def _renamed(lane: LaneState, names: Mapping[StateId, StateId]) -> LaneState:
    return replace(lane, states={names.get(id, id): listing for id, listing in lane.states.items()})
