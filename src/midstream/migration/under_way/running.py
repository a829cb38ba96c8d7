"""A plan with transitions in it: the box of a query whose migrations are under way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

from typing_extensions import override

from midstream.migration.under_way.migration_task import BegunTask, nodes
from midstream.migration.under_way.transition import Transition, grafted
from midstream.model.codec import decode, encode
from midstream.model.errors import CheckpointError
from midstream.operators.ensure import states_of
from midstream.plan.decompose import Sources
from midstream.runtime.box import Box, PlanBox
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator
from midstream.state.combinations import Combinations

Compile = Callable[[str], PlanBox]
"""From plan notation to a box."""


class TransitionMaker(Protocol):
    """Makes the transition of a strategy; the same arguments give the same operator."""

    def transition(
        self, name: str, task: BegunTask, old: Operator | None, whole: Operator, options: Mapping[str, Any]
    ) -> Transition:
        """Build the operator that takes the place of `whole`."""
        ...

    def nested(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the options for going on as the old plan of another migration."""
        ...


@dataclass(frozen=True)
class PlacedTransition:
    """A transition as a manifest remembers it, and the plan it comes from, which may be in transition itself.

    `mark` names the migration, `old` is None once nothing of the old plan runs on.
    """

    strategy: str
    mark: str
    begun: int
    options: Mapping[str, Any]
    task: BegunTask
    old: PlanInTransition | None

    @property
    def name(self) -> str:
        """A name unique among the transitions of a query."""
        return f"{self.mark}:{'+'.join(sorted(self.task.sources))}"

    def to_json(self) -> dict[str, Any]:
        """Encode the transition as JSON values."""
        return {
            "strategy": self.strategy, "mark": self.mark, "begun": self.begun, "options": dict(self.options),
            "task": encode(self.task), "old": self.old and self.old.to_json(),
        }  # fmt: skip


@dataclass(frozen=True)
class PlanInTransition:
    """A plan and the transitions placed in it, none inside another."""

    plan: PlanBox
    placed: tuple[PlacedTransition, ...]

    def to_json(self) -> dict[str, Any]:
        """Encode the plan in transition as JSON values."""
        return {"plan": self.plan.notation, "placed": [p.to_json() for p in self.placed]}

    def all(self) -> Iterator[PlacedTransition]:
        """Walk all transitions, oldest first, including those that others come from."""
        for placed in self.placed:
            if placed.old is not None:
                yield from placed.old.all()
            yield placed

    @property
    def depth(self) -> int:
        """The number of migrations nested in one another."""
        return max((1 + (placed.old.depth if placed.old else 0) for placed in self.placed), default=0)

    def within(self, sources: Sources, units: Iterable[Sources]) -> PlanInTransition:
        """Select the transitions over these sources that lie in none of the units."""
        units = tuple(units)
        inside = (p for p in self.placed if p.task.sources <= sources and not any(p.task.sources <= u for u in units))
        return PlanInTransition(self.plan, tuple(inside))

    def nested(self, transition_makers: Callable[[str], TransitionMaker]) -> PlanInTransition:
        """Return this plan in transition as the old plan of another migration."""
        placed = (replace(p, options=transition_makers(p.strategy).nested(p.options)) for p in self.placed)
        return replace(self, placed=tuple(placed))

    def root(self, transition_makers: Callable[[str], TransitionMaker]) -> Operator:
        """Build one operator that runs the plan in transition."""
        whole = self.plan.roots[0]
        below = nodes(whole)
        standing: dict[Sources, Operator] = {}
        for placed in sorted(self.placed, key=lambda p: len(p.task.sources)):
            here, old = grafted(below[placed.task.sources], standing), None
            if placed.old is not None:
                inside = nodes(here)
                units = {unit: inside[unit] for unit in placed.task.units}
                old = grafted(nodes(placed.old.root(transition_makers))[placed.task.sources], units)
            maker = transition_makers(placed.strategy)
            standing[placed.task.sources] = maker.transition(placed.name, placed.task, old, here, placed.options)
        return grafted(whole, standing)


@dataclass(frozen=True)
class MigratingBox(Box):
    """Runs a plan in transition; each transition goes once it is over, and the plan is alone when all are gone."""

    plan_in_transition: PlanInTransition
    transition_makers: Callable[[str], TransitionMaker]

    @cached_property
    def root(self) -> Operator:
        """The operator that gives the query's results."""
        return self.plan_in_transition.root(self.transition_makers)

    @override
    @property
    def results(self) -> tuple[Operator, ...]:
        return (self.root,)

    @override
    @property
    def target(self) -> PlanBox:
        return self.plan_in_transition.plan

    @override
    def operators(self) -> tuple[Operator, ...]:
        return (self.root,)

    @override
    def advance(self, lane: Lane) -> tuple[Combinations, ...]:
        return (self.root.drive(lane),)

    @override
    def withheld(self, lane: Lane) -> Combinations | None:
        return self.root.withheld(lane) if isinstance(self.root, Transition) else None

    @override
    def snapshot(self) -> Mapping[str, Any]:
        return {"box": "running", **self.plan_in_transition.to_json()}

    @override
    def settled(self, lane: Lane) -> Box:
        left = _settled(self.plan_in_transition, self.transitions(), lane)
        return replace(self, plan_in_transition=left) if left.placed else left.plan

    def transitions(self) -> dict[str, Transition]:
        """Map all transitions, including nested ones, by name."""
        return {op.name: op for op in self.root.walk() if isinstance(op, Transition)}

    @override
    def reports(self, lane: Lane) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        standing = self.transitions()
        for placed in self.plan_in_transition.all():
            transition = standing[placed.name]
            one = {"comparisons": transition.cost(lane), **transition.report(lane)}
            found.setdefault(placed.mark, {"comparisons": 0, "pieces": {}})
            found[placed.mark]["comparisons"] += one.pop("comparisons")
            found[placed.mark]["pieces"]["+".join(sorted(placed.task.sources))] = one
        return found


def restored(
    snapshot: Mapping[str, Any], compiled: Compile, transition_makers: Callable[[str], TransitionMaker]
) -> Box:
    """Rebuild the box from a snapshot."""
    if snapshot["box"] == "plan":
        return compiled(snapshot["plan"])
    return MigratingBox(_plan_in_transition(snapshot, compiled), transition_makers)


def _plan_in_transition(snapshot: Mapping[str, Any], compiled: Compile) -> PlanInTransition:
    placed = tuple(
        PlacedTransition(
            p["strategy"],
            p["mark"],
            p["begun"],
            p["options"],
            decode(BegunTask, p["task"]),
            p["old"] and _plan_in_transition(p["old"], compiled),
        )
        for p in snapshot["placed"]
    )
    return PlanInTransition(compiled(snapshot["plan"]), placed)


def _settled(plan_in_transition: PlanInTransition, standing: Mapping[str, Transition], lane: Lane) -> PlanInTransition:
    left = []
    for placed in plan_in_transition.placed:
        transition = standing[placed.name]
        if transition.is_over(lane):
            transition.leave(lane)
        else:
            old = placed.old and _settled(placed.old, standing, lane)
            left.append(replace(placed, task=transition.remembered(lane), old=old))
    return replace(plan_in_transition, placed=tuple(left))


def recovered(box: Box, lane: Lane) -> Box:
    """Return the box, or its target where a view's state is lost: only the migration could compute that content.

    Everything up to now has been delivered, so the target goes on from base rows, as after a moving of states.
    """
    for _, spec in states_of(box.operators()):
        if spec.signature.view:
            try:
                lost = not lane.holds(spec) or lane.join(spec) is None
            except CheckpointError:
                lost = True
            if lost:
                return box.target
    if not isinstance(box, MigratingBox):
        return box
    reckoned = _reckoned(box.plan_in_transition, lane)
    return box if reckoned is box.plan_in_transition else replace(box, plan_in_transition=reckoned)


def _reckoned(plan_in_transition: PlanInTransition, lane: Lane) -> PlanInTransition:
    # Queries may have changed their windows, and with them the lifetimes of old rows. Mostly nothing has changed: then
    # it stays the same object, whose operators are there.
    root, placed = plan_in_transition.plan.roots[0], list[PlacedTransition]()
    for one in plan_in_transition.placed:
        task, old = one.task.reckoned(lane, root), one.old and _reckoned(one.old, lane)
        placed.append(one if task is one.task and old is one.old else replace(one, task=task, old=old))
    same = all(one is other for one, other in zip(placed, plan_in_transition.placed, strict=True))
    return plan_in_transition if same else replace(plan_in_transition, placed=tuple(placed))
