"""What has been counted of the slices of a chain."""

from __future__ import annotations

from collections.abc import Sequence

from midstream.model.codec import encode
from midstream.model.counters import Counters, in_slice, operator_name
from midstream.model.manifest import Manifest
from midstream.operators.ensure import states_of
from midstream.operators.window_join import WindowJoin
from midstream.runtime.box import Box
from midstream.runtime.operator import Operator
from midstream.runtime.watermark import watermarks
from midstream.state.join_state import slice_of
from midstream.step.unit import Unit


def listed(manifest: Manifest, unit: Unit, boxes: Sequence[Box]) -> dict[str, dict[int, int]]:
    """By label and number of slice the rows alive in it.

    A chunk is in the slice that its youngest row is in, so a slice may hold rows that are older.
    """
    cuts = manifest.chains[unit.name].cuts
    specs = {spec.id: spec for box in boxes for _, spec in states_of(box.operators()) if len(spec.labels) == 1}
    now = min(watermarks(manifest.streams, manifest.progress)[stream] for stream in unit.streams)
    by_state: dict[str, dict[int, int]] = {id: {} for id in specs}
    for lane, state in manifest.lane_states.items():
        for id in specs.keys() & state.states.keys() if lane.rpartition(".")[0] == unit.group else ():
            listing, found = state.states[id], by_state[id]
            if not cuts:
                found[0] = found.get(0, 0) + listing.live
            for ref in listing.chunks if cuts else ():
                at = slice_of(ref.born, cuts, now) if ref.born else 0
                found[at] = found.get(at, 0) + (ref.alive if ref.born else ref.rows)
    rows: dict[str, dict[int, int]] = {label: {} for label in unit.query.aliases}
    for id, spec in specs.items():
        held = rows[spec.labels[0]]  # A source under several indexes is counted once.
        for at, count in by_state[id].items():
            held[at] = max(held.get(at, 0), count)
    return rows


def compared(manifest: Manifest, unit: Unit, boxes: Sequence[Box], end: int) -> int:
    """The comparisons made in the slice that ends at this age; without cuts those of all joins."""
    if not manifest.chains[unit.name].cuts:
        return _all(manifest, unit, boxes)
    joins = {op.id for op in _operators(boxes) if isinstance(op, WindowJoin)}
    return sum(_counters(manifest, unit, in_slice(end, join)).comparisons for join in joins)


def elsewhere(manifest: Manifest, unit: Unit, boxes: Sequence[Box], by_slice: Sequence[int]) -> int:
    """The comparisons that were made in no slice of now: under other cuts, above the slices, or in other operators."""
    return _all(manifest, unit, boxes) - sum(by_slice)


def counter(manifest: Manifest, unit: Unit, operator: str) -> dict[str, int]:
    """What an operator of the unit has counted."""
    counters: dict[str, int] = encode(_counters(manifest, unit, operator))
    return counters


def _all(manifest: Manifest, unit: Unit, boxes: Sequence[Box]) -> int:
    ids = {op.id for op in _operators(boxes)}
    return sum(_counters(manifest, unit, id).comparisons for id in ids)


def _operators(boxes: Sequence[Box]) -> list[Operator]:
    return [op for box in boxes for root in box.operators() for op in root.walk()]


def _counters(manifest: Manifest, unit: Unit, operator: str) -> Counters:
    return manifest.operators.get(operator_name(f"{unit.group}.", operator), Counters())
