"""An act in figures: what each plan did, what the changes between them cost, what the optimizer foresaw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from midstream.model.events import Event, MigrationBegun, MigrationEnded, PlanReviewed, QuerySpread, StepDone


@dataclass(frozen=True)
class Phase:
    """A run of steps under one plan, or spread over nodes as `plan` says.

    `old_plan_comparisons` is what the first plan needs for the same steps, in lanes.
    """

    first: int
    last: int
    plan: str
    rows_in: int
    rows_out: int
    comparisons: int
    old_plan_comparisons: int


@dataclass(frozen=True)
class Reviewed:
    """What the optimizer found in a step, with its `decision` and `reason` as in `PlanReviewed`.

    `foreseen` is the work of the best plans, in nanoseconds for a second of stream time; `real` is what the running one
    took since the last review, None where a change of plan was part of that. `chosen` is the plan decided for, if
    another.
    """

    step: int
    plan: str
    foreseen: Mapping[str, float]
    real: float | None
    decision: str
    chosen: str
    reason: str


@dataclass(frozen=True)
class Switch:
    """A change of plan: by which strategy, the comparisons that moving the state was foreseen to take, and took."""

    step: int
    old: str
    new: str
    strategy: str
    foreseen: float
    comparisons: int


@dataclass(frozen=True)
class Performance:
    """What happened in an act: the phases, the changes of plan between them, and the reviews that led to them."""

    phases: tuple[Phase, ...]
    switches: tuple[Switch, ...]
    reviews: tuple[Reviewed, ...]
    seconds: float


def performance(plan: str, events: Iterable[Event], kept: Sequence[StepDone], seconds: float) -> Performance:
    """Compute the figures of an act that began with a `plan`. `kept` are the steps of a run that never left it.

    A step in which the plan changed counts to the new plan, the cost of the change included.
    """
    happened = list(events)
    steps = [event for event in happened if isinstance(event, StepDone)]
    switches = _switches(happened)
    changes = [(switch.step, switch.new) for switch in switches]
    changes += [(one.step, f"{one.new}, {one.nodes} nodes") for one in happened if isinstance(one, QuerySpread)]
    bounds = [0, *(step for step, _ in changes), steps[-1].step + 1]
    phases = tuple(
        _phase([one for one in steps if first <= one.step < end], under, kept)
        for (first, end), under in zip(pairwise(bounds), [plan, *(new for _, new in changes)], strict=True)
    )
    reviews = tuple(_reviewed(event) for event in happened if isinstance(event, PlanReviewed))
    return Performance(phases, switches, reviews, seconds)


def _switches(events: Sequence[Event]) -> tuple[Switch, ...]:
    begun = [event for event in events if isinstance(event, MigrationBegun)]
    ended = [event for event in events if isinstance(event, MigrationEnded)]
    return tuple(
        Switch(one.step, one.old, one.new, one.strategy, one.detail["predicted"]["work"], done.comparisons)
        for one, done in zip(begun, ended, strict=True)
    )


def _phase(steps: Sequence[StepDone], plan: str, kept: Sequence[StepDone]) -> Phase:
    first, last = steps[0].step, steps[-1].step
    return Phase(
        first,
        last,
        plan,
        sum(sum(step.rows_in.values()) for step in steps),
        sum(sum(step.rows_out.values()) for step in steps),
        sum(step.comparisons for step in steps),
        sum(step.comparisons for step in kept if first <= step.step <= last),
    )


def _reviewed(event: PlanReviewed) -> Reviewed:
    foreseen = {one["plan"]: one["cost"] for one in event.plans}
    real, decision = event.figures["real"], event.decision
    return Reviewed(event.step, event.plan, foreseen, real, decision, event.chosen, event.reason)
