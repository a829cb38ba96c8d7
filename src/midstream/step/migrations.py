"""What became of migrations in a step: their cost so far, and the events that report it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from midstream.model.events import Event, MigrationBegun, MigrationEnded, MigrationProgressed
from midstream.model.ids import LaneId
from midstream.model.manifest import MigrationRecord, QueryEntry
from midstream.step.plan_step import StepPlan
from midstream.units.lane_step import LaneOutput
from midstream.units.unit_step import mark_of

REPORTED = ("progress", "old_serves", "new_serves", "predicted_end", "comparisons")
"""The figures in the event of a migration that makes progress."""


def account(
    plan: StepPlan, name: str, entry: QueryEntry, outputs: Mapping[LaneId, LaneOutput]
) -> tuple[QueryEntry, list[Event]]:
    """Count the step's work on a query's migrations, and collect what happened to them.

    A migration is over once it is under way in no lane any more.
    """
    step = plan.manifest.step
    unit = entry.unit(name)
    known = {**entry.migrations, **_begun(plan, name, unit)}
    if not known:
        return entry, []
    boxes = [output.state.boxes[unit] for output in outputs.values() if unit in output.state.boxes]
    alive = {mark for box in boxes for mark in under_way(box)}
    alive |= {mark for o in outputs.values() for mark, did in o.migrations.get(unit, {}).items() if did.get("going")}
    going: dict[str, MigrationRecord] = {}
    events: list[Event] = []
    for mark, record in known.items():
        did = [o.migrations[unit][mark] for o in outputs.values() if mark in o.migrations.get(unit, {})]
        record = replace(record, comparisons=record.comparisons + sum(d["comparisons"] for d in did))
        pieces = [piece for d in did for piece in d.get("pieces", {}).values()]
        if mark in alive:
            if pieces:
                record = replace(record, figures={**record.figures, **summary(pieces)})
                figures = {"comparisons": record.comparisons, **record.figures}
                detail = {k: figures[k] for k in REPORTED}
                events.append(MigrationProgressed(step, name, record.strategy, figures["phase"], detail))
            going[mark] = record
        else:
            ended = {"begun": record.begun, "steps": step - record.begun + 1, **record.detail}
            if record.begun != step and (cause := _cut_short(plan, unit)):
                ended["finished_by"] = cause
            events.append(MigrationEnded(step, name, record.strategy, record.plan, record.comparisons, ended))
    return replace(entry, migrations=going), events


def _cut_short(plan: StepPlan, unit: str) -> str | None:
    # The plan that an older migration led to was reached at once, or left.
    if plan.lanes_before != plan.manifest.shares:
        return "rescale"
    begun = plan.migrations.get(unit, ())
    return begun[-1].strategy if begun else None


def under_way(snapshot: Mapping[str, Any]) -> set[str]:
    """Collect the marks of the migrations in a box's snapshot."""
    marks: set[str] = set()
    for placed in snapshot.get("placed", ()):
        marks |= {placed["mark"]} | under_way(placed["old"] or {})
    return marks


def summary(pieces: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Summarize all pieces in all lanes by the slowest."""
    slowest = min(pieces, key=lambda piece: float(piece["progress"]))
    ends = [piece["predicted_end"] for piece in pieces if piece["predicted_end"] is not None]
    return {**slowest, "predicted_end": max(ends) if ends else None}


def _begun(plan: StepPlan, name: str, unit: str) -> dict[str, MigrationRecord]:
    # By mark; in a chain others' commands may have begun more.
    if unit not in plan.migrations:
        return {}
    own = iter(e for e in plan.events if isinstance(e, MigrationBegun) and e.query == name)
    commands = enumerate(plan.migrations.get(unit, ()))
    begun = {at: next(own) for at, command in commands if command.query == name}
    return {
        mark_of(unit, event.step, at): MigrationRecord(
            event.strategy, event.old, event.new, event.step, detail=dict(event.detail)
        )
        for at, event in begun.items()
    }
