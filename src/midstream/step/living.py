"""How many rows are alive in the states of a job."""

from __future__ import annotations

from collections.abc import Mapping

from midstream.model.ids import StateId, StateKind
from midstream.model.manifest import Manifest, StateListing


def state_rows(manifest: Manifest) -> int:
    """The rows and combinations alive in all lanes."""
    return sum(living_rows(lane.states) for lane in manifest.lane_states.values())


def living_rows(states: Mapping[StateId, StateListing]) -> int:
    """The rows and combinations alive in states of one lane; a state under several indexes is counted once."""
    found: dict[str, int] = {}
    for state_id, listing in states.items():
        if not listing.live or state_id.kind is StateKind.TABLE:
            continue
        # A base state's index holds what its base rows hold.
        by_itself = state_id.kind in (StateKind.QUEUE, StateKind.HELD)
        sign = state_id if by_itself else f"{state_id.owner}.{state_id.content}"
        found[sign] = max(found.get(sign, 0), listing.live)
    return sum(found.values())
