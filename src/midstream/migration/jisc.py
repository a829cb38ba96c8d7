"""JISC: just-in-time state completion (JISC §4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from typing_extensions import override

from midstream.migration.just_in_time.attempts import Attempts, find_whole, take_over
from midstream.migration.just_in_time.completion import Completion, complete_ahead, is_old, probe
from midstream.migration.just_in_time.probed_state import Fork, ProbedState
from midstream.migration.option import BACKGROUND, DECOMPOSE
from midstream.migration.predictions import on_demand
from midstream.migration.under_way.lasting import Lasting
from midstream.migration.under_way.migration_task import BegunTask
from midstream.migration.under_way.running import MigratingBox
from midstream.migration.under_way.transition import Transition, inner
from midstream.model.errors import CheckpointError
from midstream.model.ids import StateId
from midstream.model.words import counted
from midstream.operators.window_join import WindowJoin
from midstream.optimizer.prediction import Prediction, Situation
from midstream.plan.signature import ViewKind, ViewName
from midstream.runtime.box import Box, PlanBox
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator, View
from midstream.state.combinations import Combinations
from midstream.state.join_state import JoinState


class JISC(Lasting):
    """The new plan takes over at once; a missing state is completed for a key just before the key probes it (§4).

    Works for left-deep and bushy plans (Procedures 1-3), windows slide through incomplete states by the lifetimes of
    what is in them (§4.2), counters tell when a state is complete (§4.3), no key is attempted twice (§4.4), and an
    incomplete state outlives the migration it came from (§4.5). The paper has hash joins and says that nested loops are
    alike. Here a state that a band probes is completed for the codes within the range of each new row; one that another
    condition probes, for those rows of one source that satisfy the condition with a new row, and to find these costs
    comparisons. Only where a condition reads several sources of the state, or asks a user's predicate, the first
    probe completes it as a whole. `background` is a budget, in comparisons a step, for completing further keys, those
    of the newest rows first; it is not in the paper.

    Differences from the paper: keys are attempted per state, not per stream, for with Definition 2 and Procedure 1,
    line 1, results are lost; a step completes all its keys at once; a counter has the keys that both sides have, not
    those of the smaller side, and every state counts, for complete children do not make their parent complete (case 3).
    A set difference (§4.7) has no states that an order could leave incomplete, so nothing is forwarded: forwarding
    loses results where inner windows end (the lab's figure jisc_04_7).
    """

    name: ClassVar[str] = "jisc"
    options = (DECOMPOSE, BACKGROUND)
    keeps_old: ClassVar[bool] = False

    @override
    def transition(
        self, name: str, task: BegunTask, old: Operator | None, whole: Operator, options: Mapping[str, Any]
    ) -> Transition:
        states = inner(whole, task.units)
        new = whole.in_view(View(ViewName(name, ViewKind.NEW), states | {whole.labels}, states)) if states else whole
        return JISCTransition(whole.signature, whole.rows, name, task, None, new, whole, options)

    @override
    def begin(self, old: Box, new: PlanBox, lane: Lane, options: Mapping[str, Any], mark: str) -> Box:
        box = super().begin(old, new, lane, options, mark)
        if isinstance(old, MigratingBox) and isinstance(box, MigratingBox):
            placed = {p.name for p in old.plan_in_transition.placed}
            running = [t for name, t in old.transitions().items() if name in placed and isinstance(t, JISCTransition)]
            begun_now = {p.name for p in box.plan_in_transition.placed if p.mark == mark}
            for transition in box.transitions().values():
                if isinstance(transition, JISCTransition) and transition.name in begun_now:
                    transition.inherit(running, lane)
        return box

    @override
    def predict(self, situation: Situation) -> Prediction:
        return on_demand(situation, BACKGROUND.of(situation.options))


@dataclass(frozen=True)
class JISCTransition(Transition):
    """The new plan over states that are incomplete at first; nothing is left of the old one."""

    @cached_property
    def root(self) -> Fork | None:
        """The new plan's joins, if any of its states can be incomplete."""
        return Fork.of(self.new, self.task.units) if isinstance(self.new, WindowJoin) and not self.is_idle() else None

    @cached_property
    def probed_states(self) -> tuple[ProbedState, ...]:
        """The states that could be incomplete, deepest first."""
        return tuple(self.root.probed_states()) if self.root else ()

    @cached_property
    def open(self) -> tuple[ProbedState, ...]:
        """The states that were incomplete when the step began, deepest first."""
        names = self.task.memory.get("open")
        return (
            self.probed_states
            if names is None
            else tuple(probed for probed in self.probed_states if probed.name in names)
        )

    @override
    def tables(self) -> tuple[StateId, ...]:
        return tuple(probed.table for probed in self.open)

    @override
    def is_idle(self) -> bool:
        return not inner(self.whole, self.task.units)

    @override
    def enter(self, lane: Lane) -> None:
        for probed in self.open:
            if find_whole(probed, lane):
                self._keep(lane, {probed.spec.id: Attempts(whole=True)})
            else:
                lane.put(JoinState(probed.spec, []))

    def inherit(self, running: list[JISCTransition], lane: Lane) -> None:
        """Take over the states of older transitions, as complete as they are (§4.5)."""
        older = {probed.labels: (one, probed) for one in running for probed in one.probed_states}
        known = {text for text in self._completion(lane, {}).columns} if self.root else set()
        for probed in self.open:
            if probed.labels in older and lane.table(probed.table) is None:
                one, before = older[probed.labels]
                attempts = one.attempts(lane).get(before.spec.id, Attempts(whole=True))
                if attempts.left.keys() <= known:
                    taken = take_over(probed, before, attempts, one.task.start, lane)
                    if taken is not None:
                        self._keep(lane, {probed.spec.id: taken})

    @override
    def advance(self, lane: Lane) -> Combinations:
        if self.root is None:
            return self.new.delta(lane)
        completion = self._completion(lane, self.attempts(lane))
        for probed in self.open:
            completion.is_complete(probed)  # Begins its counter.
        complete_ahead(completion, self.root, BACKGROUND.of(self.options))
        found = probe(completion, self.root)
        self._keep(lane, completion.attempts)
        self.promoted(completion, lane)
        return found

    def promoted(self, completion: Completion, lane: Lane) -> None:
        """Take note of what a step has completed."""

    def attempts(self, lane: Lane) -> dict[StateId, Attempts]:
        """Read the attempts of the states that were incomplete when the step began, by state id."""
        found = {}
        for probed in self.open:
            try:
                table = lane.table(probed.table)
            except CheckpointError:
                table = None
            if table is not None:
                attempts = Attempts.from_batch(table, probed.spec.clocks)
            else:
                if "open" in self.task.memory:
                    self._begin_again(probed, lane)
                attempts = Attempts()
            found[probed.spec.id] = attempts.alive(lane.bounds(probed.spec.id))
        return found

    def counters(self, lane: Lane) -> dict[str, int]:
        """Count the keys not yet attempted of each incomplete state, by its name (§4.3)."""
        attempts = self.attempts(lane)
        counters = {probed.name: attempts[probed.spec.id].counter(probed.counted) for probed in self.open}
        return {name: 1 if count is None else count for name, count in counters.items() if count != 0}

    @override
    def is_over(self, lane: Lane) -> bool:
        return not self.counters(lane) or super().is_over(lane)

    @override
    def remembered(self, lane: Lane) -> BegunTask:
        counters = self.counters(lane)
        return replace(self.task, memory={"open": sorted(counters), "keys": max(self._keys, sum(counters.values()))})

    @override
    def phase(self, lane: Lane) -> str:
        counters = self.counters(lane)
        of, keys = len(self.probed_states), counted(sum(counters.values()), "key")
        return f"{len(counters)} of {of} states incomplete, {keys} left; goes on with the next rows"

    @override
    def serves(self) -> tuple[str, str]:
        return "nothing", "all results"

    @override
    def progress(self, lane: Lane) -> float:
        done = 1 - sum(self.counters(lane).values()) / self._keys if self._keys else 0.0
        return max(done, super().progress(lane))

    @property
    def _keys(self) -> int:
        return int(self.task.memory.get("keys", 0))

    def _completion(self, lane: Lane, attempts: dict[StateId, Attempts]) -> Completion:
        assert self.root is not None
        return Completion(lane, self.id, self.root, self.task.start, attempts)

    def _keep(self, lane: Lane, attempts: Mapping[StateId, Attempts]) -> None:
        for probed in self.open:
            if probed.spec.id in attempts:
                lane.keep(probed.table, attempts[probed.spec.id].to_batch(probed.spec.clocks))

    def _begin_again(self, probed: ProbedState, lane: Lane) -> None:
        # The table that says what was completed is lost, so what was completed must go too.
        lane.join(probed.spec).retain(lambda combinations: ~is_old(combinations, self.task.start))
