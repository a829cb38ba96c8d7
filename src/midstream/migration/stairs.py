"""To an eddy whose join state is kept (STAIRs: JISC §3.2, §4.6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from typing_extensions import override

from midstream.migration.moving_state import MovingState
from midstream.migration.strategy_contract import MigrationRequest
from midstream.model.counters import Counters
from midstream.operators.ensure import ensure, states_of
from midstream.plan.tree import STAIRS, Form
from midstream.runtime.box import Box, PlanBox
from midstream.runtime.lane import Lane


class EagerStairs(MovingState):
    """Change the routing, and at once Demote what the new one has no STAIR for and Promote what its STAIRs lack.

    Demoting takes an entry back to its base rows, which are there anyhow: its state is let go. Promoting joins the
    entries of the STAIRs below. Done eagerly for all entries this is moving state under another name (§4.6), with the
    same comparisons and the same silence. Promoted and demoted entries count as `moved`, and each promoted state has
    its `StateRebuilt` event.
    """

    name: ClassVar[str] = "stairs"

    @override
    def refusal(self, move: MigrationRequest) -> str | None:
        if isinstance(move.new, Form) and move.new.name == STAIRS:
            return None
        return f"{move.new.notation()} keeps no STAIRs; write such as stairs({_tree(move.new.aliases())})"

    @override
    def begin(self, old: Box, new: PlanBox, lane: Lane, options: Mapping[str, Any], mark: str) -> Box:
        before, after = states_of(old.operators()), states_of(new.roots)
        ensure(lane, [*before, *(state for state in after if len(state[1].labels) == 1)], event=False)
        promoted = ensure(lane, after)
        kept = {spec.id for _, spec in after}
        demoted = {spec.id: spec for _, spec in before if spec.id not in kept and len(spec.labels) > 1}
        for spec in (*demoted.values(), *(spec for _, spec in after if spec.id in promoted)):
            lane.count(spec.id.counted, Counters(moved=lane.join(spec).live))
        return new


def _tree(aliases: tuple[str, ...]) -> str:
    *below, last = aliases
    return f"({_tree(tuple(below))} {last})" if below else last
