"""The states below some operators, and how those that are missing are computed (Zhu §4.1.2, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence

from midstream.model.counters import Counters
from midstream.model.errors import CheckpointError
from midstream.model.events import StateRebuilt
from midstream.model.ids import StateId
from midstream.operators.match import keyed
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator
from midstream.state.combinations import concatenate
from midstream.state.join_state import JoinState
from midstream.state.specs import StateSpec


def ensure(lane: Lane, states: Sequence[tuple[Operator, StateSpec]], *, event: bool = True) -> list[StateId]:
    """See to it that the states are there: listed ones are loaded, missing ones computed from what lies below them.

    The states come children first. A missing state whose signature is there under another index is only sorted again;
    otherwise it is joined from the states of the operator below (Zhu §4.1.2, Algorithm 1). A damaged chunk counts as
    missing, since everything but base rows can be computed again. Gives the ids of the states that were computed.
    """
    computed = []
    for producer, spec in states:
        try:
            if lane.holds(spec):
                lane.join(spec)
                continue
        except CheckpointError:
            lane.forget(spec)
        before = lane.comparisons
        sibling = lane.sibling(spec)
        content = producer.content(lane) if sibling is None else concatenate(sibling) if sibling else None
        # What lies below may live longer than the combinations of this state.
        living = None if content is None else content.purge(lane.bounds(spec.id))
        parts = [] if living is None else [keyed(lane, producer.rows, living, spec.index, spec.key)]
        state = JoinState(spec, parts)
        lane.put(state)
        if state.live:
            computed.append(spec.id)
            lane.count(spec.id.counted, Counters(inserted=state.live))
            if event:
                cost = lane.comparisons - before
                lane.emit(StateRebuilt(lane.clock.step, str(lane.name), spec.id, state.live, cost))
    return computed


def states_of(roots: Sequence[Operator]) -> list[tuple[Operator, StateSpec]]:
    """The states of all operators below the roots, children first."""
    return [state for root in roots for state in root.states_below]
