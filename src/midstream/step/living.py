"""How many rows are alive in the states of a job."""

from __future__ import annotations

from collections.abc import Mapping

from midstream.model.ids import StateId, StateKind
from midstream.model.manifest import Manifest, StateListing


def state_rows(manifest: Manifest) -> int:
    """Count the rows and combinations alive in all lanes."""
    return sum(living_rows(lane.states) for lane in manifest.lane_states.values())


def living_rows(states: Mapping[StateId, StateListing]) -> int:
    """Count the rows and combinations alive in states of one lane; a state under several indexes is counted once."""
    found: dict[str, int] = {}
    for state_id, listing in states.items():
        held = state_id.combinations
        alive = listing.live if state_id.kind is not StateKind.TABLE else 0
        if alive and (held not in found or found[held] < alive):
            found[held] = alive
    return sum(found.values())
