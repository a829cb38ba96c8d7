"""What runs the queries of a manifest, and which states it stands on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from midstream.model.manifest import LaneState, Manifest
from midstream.operators.ensure import states_of
from midstream.operators.source import SourceOperator
from midstream.runtime.box import Box
from midstream.runtime.operator import Operator
from midstream.step.program import compile_program
from midstream.step.unit import Unit


def running_units(manifest: Manifest) -> list[Unit]:
    """What runs the queries, each once: a chain, or a query by itself."""
    groups = sorted({entry.group for entry in manifest.queries.values()})
    return [unit for group in groups for unit in compile_program(manifest, group, {}).units]


def running_boxes(manifest: Manifest, unit: Unit) -> list[Box]:
    """What runs a unit in its lanes, alike ones once; a migration may be over in some of them."""
    if not unit.migrates:
        return [unit.box(unit.plan)]
    lanes = manifest.lane_states.values()
    snapshots = [state.boxes[name] for state in lanes for name in (unit.name, unit.formerly) if name in state.boxes]
    begun = [snapshot for snapshot in snapshots if snapshot["box"] != "plan"]
    # What waits for the next step has not begun yet; the plan is shown that it leads to.
    return [unit.restored(snapshot) for snapshot in begun] or [unit.box(unit.plan)]


def operators_of(boxes: Sequence[Box]) -> Iterator[Operator]:
    """All operators of boxes; one that stands in several places comes as often."""
    return (operator for box in boxes for root in box.operators() for operator in root.walk())


def state_ids(unit: Unit, boxes: Sequence[Box]) -> frozenset[str]:
    """The ids of all states that boxes stand on, base rows included."""
    found = {spec.id for spec in unit.kept}
    found |= {spec.id for box in boxes for _, spec in states_of(box.operators())}
    return frozenset(found | {op.spec.id for op in operators_of(boxes) if isinstance(op, SourceOperator)})


def lanes_of_group(manifest: Manifest, group: str) -> dict[str, LaneState]:
    """By name the lanes of a lane group."""
    return {name: lane for name, lane in manifest.lane_states.items() if name.rpartition(".")[0] == group}
