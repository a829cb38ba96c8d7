"""Rows fed to a plan outside the step's own deltas, its output thrown away (HybMig §4.1, §4.3)."""

from __future__ import annotations

from collections.abc import Mapping

from midstream.model.counters import Counters
from midstream.model.window import EVENT_TIME
from midstream.operators.ensure import ensure, states_of
from midstream.operators.source import SourceOperator
from midstream.plan.signature import ViewName
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator
from midstream.state.combinations import Combinations, concatenate, empty
from midstream.state.specs import StateSpec


def feed(plan: Operator, view: ViewName, pieces: Mapping[str, Combinations], lane: Lane) -> None:
    """Run a plan over one more piece of each of its inputs; what it gives is thrown away.

    `pieces` are by the ids of the inputs. Afterwards they count as old in the states that the plan has for itself under
    the view's name; nothing else in the lane has changed. The plan must not be advanced in the same step.
    """
    with lane.replaying(pieces):
        plan.delta(lane)
    for _, spec in states_of([plan]):
        if spec.signature.is_within(view) and (aged := lane.join(spec).age()):
            lane.count(f"state {spec.id}", Counters(inserted=aged))


def old_rows(unit: Operator, lane: Lane) -> Combinations:
    """The living old combinations of a plan's input, in order of time: as a state holds them, else joined anew."""
    held = None if isinstance(unit, SourceOperator) else lane.sibling(unsorted(unit))
    if held is None:
        ensure(lane, states_of([unit]), event=False)
        found = unit.content(lane)
    else:
        found = concatenate([empty(*_shape(unit)), *(_ordered(piece, unit) for piece in held)])
    return found.take(found.valid_from[EVENT_TIME].argsort(kind="stable"))


def unsorted(unit: Operator) -> StateSpec:
    """The state that would hold an input's combinations one after the other."""
    return StateSpec(unit.signature.whole(), *_shape(unit), index="scan")


def _shape(unit: Operator) -> tuple[tuple[str, ...], tuple[str, ...]]:
    labels = tuple(sorted(unit.labels))
    return labels, unit.rows[labels[0]].clocks


def _ordered(combinations: Combinations, unit: Operator) -> Combinations:
    refs = {label: combinations.refs[label] for label in sorted(unit.labels)}
    return Combinations(refs, combinations.valid_from, combinations.valid_to)
