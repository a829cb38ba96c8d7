"""The strategies that last: what they have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from typing_extensions import override

from midstream.migration import strategy_contract
from midstream.migration.strategy_contract import Strategy
from midstream.migration.under_way.migration_task import BegunTask, nodes
from midstream.migration.under_way.running import MigratingBox, PlacedTransition, PlanInTransition, TransitionMaker
from midstream.migration.under_way.transition import Transition, apart
from midstream.model.errors import CheckpointError
from midstream.operators.ensure import ensure, states_of
from midstream.plan.decompose import Task, decompose
from midstream.plan.signature import ViewKind, ViewName
from midstream.runtime.box import Box, PlanBox
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator

DEEPEST = 8
"""Migrations that run inside one another at most; one more first finishes them, as a moving of states does."""


class Lasting(Strategy):
    """A strategy whose work is done by a transition for each piece that decomposition leaves (HybMig §3.1).

    `keeps_old` says whether the old plan runs on for a while. The old plan may be migrations under way; each of them
    makes every step dearer, so that beyond `DEEPEST` it is cheaper to finish them.
    """

    keeps_old: ClassVar[bool] = True

    @abstractmethod
    def transition(
        self, name: str, task: BegunTask, old: Operator | None, whole: Operator, options: Mapping[str, Any]
    ) -> Transition:
        """Build the operator for one piece of a migration; equal arguments give an equal operator."""

    def nested(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the options for going on as the old plan of another migration, which holds no result back."""
        return options

    def is_whole(self, options: Mapping[str, Any]) -> bool:
        """Return whether the plan must move in one piece."""
        return not options.get("decompose", True)

    @override
    def begin(self, old: Box, new: PlanBox, lane: Lane, options: Mapping[str, Any], mark: str) -> Box:
        ensure(lane, states_of(old.operators()), event=False)
        if len(new.roots) > 1:
            # A difference has one plan, however it is written.
            return new
        before = old.plan_in_transition if isinstance(old, MigratingBox) else PlanInTransition(old.target, ())
        root = old.results[0]
        if self.keeps_old and before.depth >= DEEPEST:
            ensure(lane, states_of(old.target.roots), event=False)
            before, root = PlanInTransition(old.target, ()), old.target.roots[0]
        # What a migration under way does inside, no other can be split at.
        at = () if self.is_whole(options) else nodes(root).keys()
        # A single source has no join whose state would have to move.
        tasks = [task for task in decompose(old.target.plan, new.plan, at) if len(task.sources) > 1]
        placed = []
        for task in tasks:
            source = before.within(task.sources, task.units).nested(self.maker) if self.keeps_old else None
            begun = BegunTask.begun(task, lane, new.roots[0])
            placed.append(PlacedTransition(self.name, mark, lane.clock.step, dict(options), begun, source))
        # What both plans have in common goes on as it is, in transition or not.
        common = [p for p in before.placed if not any(_covers(task, p.task) for task in tasks)]
        running = MigratingBox(PlanInTransition(new, (*common, *placed)), self.maker)
        begun_now = {p.name for p in placed}
        own = [t for t in running.transitions().values() if t.name in begun_now]
        for transition in own:
            transition.enter(lane)
        ensure(lane, [s for t in own for s in states_of(t.children())], event=False)
        return _without_idle(running, {t.name for t in own if t.is_idle()}, lane)

    @property
    def maker(self) -> Callable[[str], TransitionMaker]:
        """The function that rebuilds transitions of any strategy."""
        return maker


class LastingApart(Lasting):
    """A strategy that lasts, and whose new plan has states of its own."""

    @property
    @abstractmethod
    def made(self) -> type[Transition]:
        """The operator for one piece of a migration."""

    @override
    def transition(
        self, name: str, task: BegunTask, old: Operator | None, whole: Operator, options: Mapping[str, Any]
    ) -> Transition:
        new = apart(whole, ViewName(name, ViewKind.NEW), task.units)
        before = old if self.keeps_old else None
        return self.made(whole.signature, whole.rows, name, task, before, new, whole, options)


def maker(name: str) -> TransitionMaker:
    """Find the strategy that a manifest names for a migration under way; raises `CheckpointError` if there is none."""
    found = strategy_contract.discovered().get(name)
    if not isinstance(found, Lasting):
        raise CheckpointError(
            f"this version of midstream does not know {name!r}, the strategy of a running migration",
            place="manifest",
            remedy="use the version of midstream that began the migration, or go back to an older step of "
            "the checkpoint",
        )
    return found


def _covers(task: Task, other: Task) -> bool:
    # A transition within one of the task's units is not covered.
    return other.sources <= task.sources and not any(other.sources <= unit for unit in task.units)


def _without_idle(running: MigratingBox, idle: set[str], lane: Lane) -> Box:
    # The new plan of an idle transition lacks nothing.
    for name, transition in running.transitions().items():
        if name in idle:
            transition.leave(lane)
    left = tuple(p for p in running.plan_in_transition.placed if p.name not in idle)
    remaining = replace(running.plan_in_transition, placed=left)
    return MigratingBox(remaining, running.transition_makers) if left else remaining.plan
