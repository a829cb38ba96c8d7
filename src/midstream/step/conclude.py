"""After a step: what the lanes gave back becomes the next manifest. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from midstream.logical.query import query_of
from midstream.model.counters import NOTHING, Counters
from midstream.model.events import (
    Event,
    MigrationBegun,
    MigrationEnded,
    MigrationProgressed,
    ResultsRejected,
    RowsLate,
    RowsRejected,
    StepDone,
    TimesDoubtful,
)
from midstream.model.frozen import revised
from midstream.model.ids import CounterKey, LaneId, OperatorId, StateKind
from midstream.model.manifest import LaneState, Manifest, MigrationRecord, QueryEntry, StreamProgress
from midstream.model.words import rough_span_text, time_text
from midstream.runtime.watermark import BEGINNING, Seen, advance, watermarks
from midstream.step.plan_step import StepPlan
from midstream.units.arrangement import concluded_arrangement
from midstream.units.lane_load import state_rows, worked
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


def progress_after(plan: StepPlan, seen: Mapping[str, Seen]) -> dict[str, StreamProgress]:
    """Compute the progress of each stream once the step's rows are counted."""
    return advance(plan.manifest.streams, plan.manifest.progress, seen, plan.arrangement.read)


def conclude(
    before: Manifest,
    plan: StepPlan,
    outputs: Mapping[LaneId, LaneOutput],
    seen: Mapping[str, Seen],
    progress: Mapping[str, StreamProgress] | None = None,
    marks: Mapping[str, int] | None = None,
) -> tuple[Manifest, tuple[Event, ...]]:
    """Compute the manifest after the step, and everything that happened in it.

    `before` is the manifest the step began from; `outputs` has those of all lanes, `progress` the result of
    `progress_after` and `marks` the watermarks by it, if these are known already.
    """
    manifest, step = plan.manifest, plan.manifest.step
    progress = progress_after(plan, seen) if progress is None else progress
    marks = watermarks(manifest.streams, progress) if marks is None else marks
    # Of many streams most are often silent.
    spoke = {name: s for name, s in seen.items() if s.rows or s.late or s.rejected or s.greatest is not None}
    progress, doubtful = _doubtful(before, manifest, spoke, progress)
    done_in = _done_in(outputs)
    work, done_in_all = _work_of(done_in)
    queries, moved = dict[str, QueryEntry](), list[Event]()
    rows_out, refused = _rows_out(manifest, outputs), _rejected(outputs)
    for name, entry in manifest.queries.items():
        unit = entry.unit(name)
        did = work.get(unit, NOTHING)
        moves = bool(entry.migrations) or unit in plan.migrations
        if did is NOTHING and not (moves or rows_out[name] or name in refused):
            queries[name] = entry
            continue
        own = did + Counters(rows_out=rows_out[name]) if rows_out[name] else did
        entry = entry.counted(entry.counters + own)
        if name in refused:
            entry = replace(entry, rejected=entry.rejected + refused[name])
        if moves:
            entry, happened = account(plan, name, entry, outputs)
            moved += happened
        queries[name] = entry
    states = {lane: output.state for lane, output in outputs.items()}
    # Counters stay for as long as the queries do.
    uses = [(one.group, operators) for one in done_in for operators in one.uses.values()]
    used, kept = {operator.keys[group] for group, operators in uses for operator in operators}, manifest.operators
    operators = {**kept} if kept.keys() <= used else {k: v for k, v in kept.items() if k in used}
    _count(done_in, operators)
    if plan.lanes_before != manifest.shares:
        dropped = _dropped(before, outputs)
        done_in_all += Counters.sum(dropped.values())
        _add(operators, dropped)
    # An operator takes what the one below it gives: the sum over all of them is nothing that came in or went out.
    came_in = sum([one.rows for name, one in spoke.items() if not manifest.streams[name].answers_of])
    went_out = sum([rows for name, rows in rows_out.items() if rows and not manifest.queries[name].part])
    totals = manifest.totals + revised(done_in_all, rows_in=came_in, rows_out=went_out)
    after = revised(
        manifest, progress=progress, queries=queries, lane_states=states, operators=operators, totals=totals
    )
    after = concluded_arrangement(manifest, worked(after, outputs))
    done = StepDone(
        step,
        {name: s.rows for name, s in seen.items()},
        rows_out,
        done_in_all.comparisons,
        state_rows(after),
        {name: None if mark == BEGINNING else mark for name, mark in marks.items()},
    )
    late = [
        RowsLate(step, name, s.late, watermarks(manifest.streams, before.progress)[name])
        for name, s in spoke.items()
        if s.late
    ]
    rejected = [RowsRejected(step, name, s.rejected) for name, s in spoke.items() if s.rejected]
    failed = [ResultsRejected(step, name, rows) for name, rows in refused.items()]
    lanes = [event for output in outputs.values() for event in output.events]
    return after, (*plan.events, *moved, *lanes, *late, *doubtful, *rejected, *failed, done)


def _doubtful(
    before: Manifest, manifest: Manifest, seen: Mapping[str, Seen], progress: Mapping[str, StreamProgress]
) -> tuple[Mapping[str, StreamProgress], list[TimesDoubtful]]:
    """Return what speaks against the event times that the step has brought, and the progress that has it noted."""
    found: list[TimesDoubtful] = []
    noted: dict[str, StreamProgress] = {}
    for name, one in seen.items():
        if one.greatest is None or manifest.streams[name].answers_of:
            continue
        past = before.progress.get(name)
        if past is None or past.greatest is None:
            if not _LIKELY[0] <= one.greatest < _LIKELY[1]:
                reason = f"its first rows reach to {time_text(one.greatest)}, which is outside of 1970 to 2100"
                found.append(TimesDoubtful(manifest.step, name, f"{reason}; is its unit right?"))
        elif _DAY < (jump := one.greatest - past.greatest) > 10 * past.jump and jump > _widest(manifest):
            # Steps that each bring more than any window would otherwise be reported one by one.
            noted[name] = replace(progress[name], jump=jump)
            if manifest.streams[name].max_ahead is None:
                reason = f"its newest row went {rough_span_text(jump / 1e6)} ahead in one step, further than any window"
                found.append(TimesDoubtful(manifest.step, name, f"{reason}; max_ahead makes such rows dead letters"))
    return {**progress, **noted} if noted else progress, found


_DAY = 86_400_000_000
_LIKELY = (0, 4_102_444_800_000_000)
"""From the year 1970 to 2100."""


def _widest(manifest: Manifest) -> int:
    # In microseconds, of windows of time alone.
    windows = [source.window for entry in manifest.queries.values() for source in query_of(entry).sources]
    return max((window.size for window in windows if window is not None and window.kind == "range"), default=0)


def _rejected(outputs: Mapping[LaneId, LaneOutput]) -> dict[str, int]:
    # For queries that have some.
    found: dict[str, int] = {}
    for output in outputs.values():
        for name, rows in output.rejected.items():
            found[name] = found.get(name, 0) + rows
    return found


def _rows_out(manifest: Manifest, outputs: Mapping[LaneId, LaneOutput]) -> dict[str, int]:
    found = dict.fromkeys(manifest.queries, 0)
    for output in outputs.values():
        for name, rows in output.rows_out.items():
            if rows and name in found:
                found[name] += rows
    return found


class _Done(NamedTuple):
    """What was counted in lanes of a group, together."""

    group: str
    uses: Mapping[str, tuple[OperatorId, ...]]
    counters: Mapping[OperatorId, Counters]


def _done_in(outputs: Mapping[LaneId, LaneOutput]) -> list[_Done]:
    # Of many lanes, those that a task has reported are summed column by column.
    lanes = dict[tuple[str, int], list[LaneOutput]]()
    for lane, output in outputs.items():
        lanes.setdefault((lane.group, id(output.uses)), []).append(output)
    return [
        _Done(group, many[0].uses, many[0].counters if len(many) == 1 else _together(many))
        for (group, _), many in lanes.items()
    ]


def _together(outputs: Iterable[LaneOutput]) -> dict[OperatorId, Counters]:
    found = dict[OperatorId, list[Counters]]()
    for output in outputs:
        for operator, counters in output.counters.items():
            found.setdefault(operator, []).append(counters)
    return {operator: Counters.sum(counters) for operator, counters in found.items()}


def _work_of(done: Iterable[_Done]) -> tuple[dict[str, Counters], Counters]:
    # Rows in of a unit are its sources', results are counted by query.
    found: dict[str, Counters] = {}
    in_all = NOTHING
    for _, uses, counted in done:
        did = {o: counters for o, counters in counted.items() if counters is not NOTHING and o.slice is None}
        if not did:
            continue
        together = Counters.sum(did.values())
        in_all = in_all + together if in_all is not NOTHING else together
        for unit, operators in uses.items():
            used = [operator for operator in operators if operator in did]
            if not used:
                continue
            whole = together if len(used) == len(did) else Counters.sum([did[operator] for operator in used])
            arrived = sum([did[operator].rows_in for operator in used if operator.kind == "source"])
            own = revised(whole, rows_in=arrived, rows_out=0)
            if own != NOTHING:
                found[unit] = found[unit] + own if unit in found else own
    return found, in_all


def _count(done: Iterable[_Done], total: dict[CounterKey, Counters]) -> None:
    for one in done:
        _add(total, {operator.keys[one.group]: counters for operator, counters in one.counters.items()})


def _add(total: dict[CounterKey, Counters], more: Mapping[CounterKey, Counters]) -> None:
    # Most operators often have nothing to add.
    for key, counters in more.items():
        if key not in total:
            total[key] = counters
        elif counters is not NOTHING:
            total[key] += counters


def _dropped(before: Manifest, outputs: Mapping[LaneId, LaneOutput]) -> dict[CounterKey, Counters]:
    # Rows that the new lanes do not hold, or inserted once more, count as purged.
    counted: dict[CounterKey, Counters] = {}
    _count(_done_in(outputs), counted)
    held = _living(before.lane_states)
    holds = _living({lane: output.state for lane, output in outputs.items()})
    dropped = {}
    for name, live in holds.items():
        counters = counted.get(name, Counters())
        dropped[name] = Counters(purged=held.get(name, 0) + counters.inserted - counters.purged - live)
    return dropped


def _living(lanes: Mapping[LaneId, LaneState]) -> dict[CounterKey, int]:
    # In all lanes of its group, by the key of the state's counters.
    found: dict[CounterKey, int] = {}
    for lane, state in lanes.items():
        for state_id, listing in state.states.items():
            if state_id.kind in (StateKind.QUEUE, StateKind.HELD, StateKind.TABLE):
                continue
            name = state_id.counted.keys[lane.group]
            found[name] = found.get(name, 0) + listing.live
    return found
