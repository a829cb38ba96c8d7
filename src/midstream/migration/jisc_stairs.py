"""JISC over STAIRs (JISC §4.6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from typing_extensions import override

from midstream.migration.jisc import JISC, JISCTransition
from midstream.migration.just_in_time.completion import Completion
from midstream.migration.strategy_contract import MigrationRequest
from midstream.migration.under_way.migration_task import BegunTask
from midstream.migration.under_way.transition import Transition
from midstream.model.counters import Counters
from midstream.operators.ensure import states_of
from midstream.plan.notation import word_before
from midstream.plan.tree import STAIRS, Form
from midstream.runtime.box import Box, PlanBox
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator


class JISCStairs(JISC):
    """Change the routing of an eddy that keeps join state, Demote what it has no STAIR for, Promote on demand (§4.6).

    A row that is routed to a STAIR which is incomplete for its key goes to the highest complete ones below first, whose
    entries are promoted: that is JISC's completion. `stairs` promotes every entry at once instead. Promoted and demoted
    entries count as `moved`.
    """

    name: ClassVar[str] = "jisc_stairs"

    @override
    def refusal(self, move: MigrationRequest) -> str | None:
        if not (isinstance(move.new, Form) and move.new.name == STAIRS):
            return f"{move.new.notation()} keeps no STAIRs; jisc goes from joins to joins"
        if word_before(move.old) != STAIRS:
            return f"{move.old} keeps no STAIRs whose entries could be promoted; strategy stairs makes them"
        return None

    @override
    def transition(
        self, name: str, task: BegunTask, old: Operator | None, whole: Operator, options: Mapping[str, Any]
    ) -> Transition:
        return PromotingTransition.like(super().transition(name, task, old, whole, options))

    @override
    def begin(self, old: Box, new: PlanBox, lane: Lane, options: Mapping[str, Any], mark: str) -> Box:
        box = super().begin(old, new, lane, options, mark)
        kept = {spec.id for _, spec in states_of(new.roots)}
        demoted = {spec.id: spec for _, spec in states_of(old.operators()) if len(spec.labels) > 1}
        for spec in demoted.values():
            if spec.id not in kept:
                lane.count(spec.id.counted, Counters(moved=lane.join(spec).live))
        return box


@dataclass(frozen=True)
class PromotingTransition(JISCTransition):
    """JISC's transition, whose completions are promotions."""

    @override
    def promoted(self, completion: Completion, lane: Lane) -> None:
        for probed in self.open:
            # Under the name that outlives the migration.
            state = replace(probed.spec, signature=probed.spec.signature.whole()).id
            lane.count(state.counted, Counters(moved=completion.made.get(probed.spec.id, 0)))
