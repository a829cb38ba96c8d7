"""States that a migration finds when it begins: whole ones, and incomplete ones of another JISC (JISC §4.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from midstream.migration.just_in_time.attempts import Attempts
from midstream.migration.just_in_time.probed_state import ProbedState
from midstream.model.errors import CheckpointError
from midstream.operators.match import keyed
from midstream.runtime.lane import Lane
from midstream.state.combinations import Combinations, concatenate
from midstream.state.join_state import JoinState
from midstream.state.specs import StateSpec


def find_whole(probed: ProbedState, lane: Lane) -> bool:
    """Fill a state with what another plan holds, if there is one that lacks nothing (Definition 1)."""
    whole = replace(probed.spec, signature=probed.spec.signature.whole())
    try:
        if lane.holds(whole):
            lane.share(whole, probed.spec)
            return True
        content = lane.sibling(whole)
    except CheckpointError:
        return False
    if content is None:
        return False
    _fill(probed, content, lane)
    return True


def take_over(
    probed: ProbedState, older: ProbedState, attempts: Attempts, start: Mapping[str, int], lane: Lane
) -> Attempts | None:
    """Continue a state of a migration under way, over equal sources; None where that cannot be.

    It keeps its own start and its attempted keys, as §4.5 does with its mark; a state that is new and missing has the
    new start.
    """
    state = lane.join(older.spec)
    if _as_whole(probed.spec) == _as_whole(older.spec):
        lane.share(older.spec, probed.spec)
    elif not state.left_out:
        _fill(probed, [part.combinations for part in state.old], lane)
    else:
        return None
    return attempts if attempts.start is not None or attempts.whole else replace(attempts, start=dict(start))


def _as_whole(spec: StateSpec) -> str:
    return replace(spec, signature=spec.signature.whole()).id


def _fill(probed: ProbedState, content: list[Combinations], lane: Lane) -> None:
    parts = []
    if content:
        parts.append(keyed(lane, probed.operator.rows, concatenate(content), probed.spec.index, probed.spec.key))
    lane.put(JoinState(probed.spec, parts))
