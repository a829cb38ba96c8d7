"""What runs a query, and which states it stands on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from midstream.model.manifest import Manifest
from midstream.operators.ensure import states_of
from midstream.operators.source import SourceOperator
from midstream.runtime.box import Box
from midstream.sharing.chains import members
from midstream.step.plan_step import entry_of
from midstream.step.unit import Unit


def running_boxes(manifest: Manifest, unit: Unit) -> list[Box]:
    """What runs a query in its lanes, alike ones once; a migration may be over in some of them."""
    if not unit.migrates:
        return [unit.box(unit.plan)]
    lanes = manifest.lane_states.values()
    snapshots = [state.boxes[name] for state in lanes for name in (unit.name, unit.formerly) if name in state.boxes]
    begun = [snapshot for snapshot in snapshots if snapshot["box"] != "plan"]
    # What waits for the next step has not begun yet; the plan is shown that it leads to.
    return [unit.restored(snapshot) for snapshot in begun] or [unit.box(unit.plan)]


def migration_progress(manifest: Manifest, name: str) -> dict[str, Any] | None:
    """The running migration of a query, or None: strategy, phase, what old and new plan serve, progress, predicted end.

    The end is in event time, in microseconds; it is None where only row counts or spare time decide it. `under_way` has
    all migrations of the query, oldest first: the newest began while the others ran.
    """
    entry = entry_of(manifest, name)
    mates = members(manifest, entry.chain) if entry.shares else [name]
    records = {mark: record for mate in mates for mark, record in manifest.queries[mate].migrations.items()}
    if not records:
        return None
    under_way = [{"mark": mark, **record} for mark, record in records.items()]
    return {"query": name, **under_way[-1], "under_way": under_way}


def state_ids(unit: Unit, boxes: Sequence[Box]) -> set[str]:
    """The ids of all states that boxes stand on, base rows included."""
    found = {spec.id for spec in unit.kept}
    for box in boxes:
        found |= {spec.id for _, spec in states_of(box.operators())}
        operators = [op for root in box.operators() for op in root.walk()]
        found |= {op.spec.id for op in operators if isinstance(op, SourceOperator)}
    return found


def live_rows(manifest: Manifest, unit: Unit, boxes: Sequence[Box]) -> dict[str, int]:
    """The living rows of each state that boxes stand on, over all lanes."""
    wanted, found = state_ids(unit, boxes), dict[str, int]()
    for name, lane in manifest.lane_states.items():
        if name.rpartition(".")[0] == unit.group:
            for state_id, listing in lane.states.items():
                if state_id in wanted:
                    found[state_id] = found.get(state_id, 0) + listing.live
    return found
