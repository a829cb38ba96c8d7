"""What runs the queries of a manifest, which states it stands on, and what of them is in each slice of a chain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from midstream.expr.expression import infix
from midstream.model.ids import LaneId
from midstream.model.manifest import LaneState, Manifest, StateListing
from midstream.operators.ensure import states_of
from midstream.operators.source import SourceOperator
from midstream.runtime.box import Box
from midstream.runtime.operator import Operator
from midstream.runtime.watermark import watermarks
from midstream.state.join_state import slice_of
from midstream.state.specs import RowsSpec, StateSpec
from midstream.units.chain_unit import ChainUnit
from midstream.units.program import compile_program
from midstream.units.unit import Unit


def running_units(manifest: Manifest) -> list[Unit]:
    """Compile what runs the queries, each once: a chain, or a query by itself."""
    groups = sorted({entry.group for entry in manifest.queries.values()})
    return [unit for group in groups for unit in compile_program(manifest, group, {}).units]


def running_boxes(manifest: Manifest, unit: Unit) -> list[Box]:
    """Restore what runs a unit in its lanes, equal boxes once; a migration may be over in some of them."""
    if not unit.migrates:
        return [unit.box(unit.plan)]
    lanes = manifest.lane_states.values()
    snapshots = [state.boxes[name] for state in lanes for name in (unit.name, unit.formerly) if name in state.boxes]
    begun = [snapshot for snapshot in snapshots if snapshot["box"] != "plan"]
    # What waits for the next step has not begun yet; the plan is shown that it leads to.
    return [unit.restored(snapshot) for snapshot in begun] or [unit.box(unit.plan)]


def operators_of(boxes: Sequence[Box]) -> Iterator[Operator]:
    """Yield all operators of boxes; an operator in several places is repeated."""
    return (operator for box in boxes for root in box.operators() for operator in root.walk())


def state_names(unit: Unit, boxes: Sequence[Box]) -> dict[str, str]:
    """Name all states that boxes stand on, base rows included: their names for users, by id."""
    specs: list[RowsSpec | StateSpec] = [*unit.kept, *(spec for box in boxes for _, spec in states_of(box.operators()))]
    specs += [op.spec for op in operators_of(boxes) if isinstance(op, SourceOperator)]
    return {spec.id: _name(spec) for spec in specs}


def _name(spec: RowsSpec | StateSpec) -> str:
    if isinstance(spec, RowsSpec):
        return f"rows of {spec.label}"
    keys = ", ".join(map(infix, spec.key))
    how = f" by {keys}" + (", sorted" if spec.index == "band" else "") if keys else ", unsorted"
    return f"{' '.join(spec.labels)}{how}" + (" (of a plan in transition)" if spec.signature.view else "")


def rows_by_slice(manifest: Manifest, chain: ChainUnit, boxes: Sequence[Box]) -> dict[str, tuple[int, ...]]:
    """Count the rows alive by label and slice; a state that is not cut is all in one slice.

    A chunk is in the slice that its youngest row is in, so a slice may hold rows that are older.
    """
    cuts = manifest.chains[chain.name].cuts
    specs = {spec.id: spec for box in boxes for _, spec in states_of(box.operators()) if len(spec.labels) == 1}
    now = min(watermarks(manifest.streams, manifest.progress)[stream] for stream in chain.streams)
    rows = {label: [0] * max(len(cuts), 1) for label in chain.query.aliases}
    for id, spec in specs.items():
        counts = [0] * max(len(cuts), 1)
        for lane in lanes_of_group(manifest, chain.group).values():
            listing = lane.states.get(id, StateListing())
            if not cuts:
                counts[0] += listing.live
            for ref in listing.chunks if cuts else ():
                counts[slice_of(ref.born, cuts, now) if ref.born else 0] += ref.alive if ref.born else ref.rows
        label = spec.labels[0]  # A source under several indexes is counted once.
        rows[label] = list(map(max, rows[label], counts))
    return {label: tuple(counts) for label, counts in rows.items()}


def lanes_of_group(manifest: Manifest, group: str) -> dict[LaneId, LaneState]:
    """Select the lanes of a lane group, by id."""
    return {name: lane for name, lane in manifest.lane_states.items() if name.group == group}
