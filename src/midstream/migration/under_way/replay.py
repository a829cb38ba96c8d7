"""Rows fed to a plan outside the step's own deltas, its output thrown away (HybMig §4.1, §4.3)."""

from __future__ import annotations

from collections.abc import Mapping

from midstream.migration.base import ensure, states_of
from midstream.model.counters import Counters
from midstream.model.window import EVENT_TIME
from midstream.operators.source import SourceOperator
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator
from midstream.state.combinations import Combinations, concatenate, empty
from midstream.state.compaction import choose_neighbours
from midstream.state.join_state import JoinState
from midstream.state.sorted_run import merge_runs
from midstream.state.specs import StateSpec


def feed(plan: Operator, view: str, pieces: Mapping[str, Combinations], lane: Lane) -> None:
    """Run a plan over one more piece of each of its inputs; what it gives is thrown away.

    `pieces` are by the ids of the inputs. Afterwards they count as old in the states that the plan has for itself under
    the view's name; nothing else in the lane has changed. The plan must not be advanced in the same step.
    """
    aside, lane.deltas = lane.deltas, dict(pieces)
    try:
        plan.delta(lane)
    finally:
        lane.deltas = aside
    for _, spec in states_of([plan]):
        if spec.signature.view.startswith(view):
            _grow_old(lane.join(spec), lane)


def _grow_old(state: JoinState, lane: Lane) -> None:
    if state.delta is None:
        return
    lane.count(f"state {state.spec.id}", Counters(inserted=len(state.delta)))
    runs = [run for run in (*state.old, state.delta) if len(run)]
    while found := choose_neighbours([len(run) for run in runs]):
        runs[found[0] : found[1]] = [merge_runs(runs[found[0] : found[1]])]
    state.old, state.delta = runs, None


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
