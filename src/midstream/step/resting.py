"""Units at rest: a query whose streams bring nothing, and which holds nothing, costs a step no more than a look.

What it would do is known: its states stay as they are listed, its answer is the empty one of before. Whether others
share its states does not matter, for all that it could read are as empty as they are.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from midstream.model.ids import StateId
from midstream.model.manifest import LaneState, StateListing
from midstream.runtime.watermark import StepClock
from midstream.step.program import Program
from midstream.step.requirements import Requirements
from midstream.step.unit import Unit


def at_rest(
    program: Program, state: LaneState, inputs: Mapping[str, pa.RecordBatch], clock: StepClock
) -> dict[str, Requirements]:
    """Find the units of a lane that do nothing in a step, by name, with what they require."""
    if program.changed:
        return {}
    silent = {name for name, rows in inputs.items() if not rows.num_rows}
    holding = {id for id, listing in state.states.items() if listing.chunks}
    listed, found = state.states.keys(), dict[str, Requirements]()
    for unit in program.units:
        if not unit.nothing or unit.name in program.migrations or unit.since == clock.step:
            continue
        if silent.issuperset(unit.streams):
            required = _by_itself(unit, state)
            if required is not None and listed >= required.states and not holding & required.states:
                found[unit.name] = required
    return found


def _by_itself(unit: Unit, state: LaneState) -> Requirements | None:
    # None where the unit is on its way to another plan.
    box, snapshot = unit.box(unit.plan), state.boxes.get(unit.name)
    if snapshot is None or snapshot["box"] != "plan" or snapshot["plan"] != box.notation:
        return None
    return unit.requirements(box)


def with_resting(before: LaneState, after: LaneState, resting: Mapping[str, Requirements]) -> LaneState:
    """Add what the units at rest hold to the state of a lane after a step; the state before where all of them rest."""
    if not resting:
        return after
    kept = {id for required in resting.values() for id in required.states}
    if before.boxes.keys() == resting.keys() and before.states.keys() == kept:
        return before
    states: dict[StateId, StateListing] = {
        id: after.states.get(id, listing) for id, listing in before.states.items() if id in kept or id in after.states
    }
    boxes = {name: after.boxes.get(name, box) for name, box in before.boxes.items()
             if name in resting or name in after.boxes}  # fmt: skip
    return LaneState({**states, **after.states}, {**boxes, **after.boxes})
