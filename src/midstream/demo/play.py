"""An act played through Spark: input replayed week by week, the plan changed in the middle."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet

from midstream.checkpoint.reader import Checkpoint
from midstream.demo.acts import LATENESS, Act
from midstream.demo.flights import Replay
from midstream.model.events import Event, MigrationBegun, MigrationEnded, StepDone
from midstream.state.store.places import storage_at

QUERY = "flights"
STRATEGY = "moving_state"
POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Phase:
    """A run of steps under one plan; `old_plan_comparisons` is what the first plan needs for the same steps."""

    first: int
    last: int
    plan: str
    rows_in: int
    rows_out: int
    comparisons: int
    old_plan_comparisons: int


@dataclass(frozen=True)
class Performance:
    """What happened in an act: before the change and after it, and what the change itself cost."""

    phases: tuple[Phase, ...]
    changed_at: int | None
    migration_comparisons: int
    seconds: float


def play(
    act: Act, replays: Mapping[str, Replay], folder: Path, session: Any, cores: int, progress: Callable[..., None]
) -> Performance:
    """Run the act through Spark until its input is used up; the plan is changed when half of the weeks are done.

    State goes to `checkpoint` and results to `results` below the folder. `progress` is told the weeks done
    (`completed`) and what is going on (`description`).
    """
    import midstream as ms

    began = time.monotonic()
    checkpoint, weeks = folder / "checkpoint", max(replays[name].files for name in act.streams)
    job = ms.Job(session, checkpoint=str(checkpoint), lanes=cores)
    for name in act.streams:
        files = str(replays[name].folder)
        schema = session.read.parquet(files).schema
        frame = session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(files)
        job.stream(name, frame, timestamp="ts", lateness=LATENESS)
    job.query(QUERY, act.sql, plan=act.old_plan, sink=ms.sinks.files(folder / "results"))
    run = job.start(trigger={"availableNow": True})
    manifests, changed = Checkpoint(storage_at(checkpoint)).manifests, False
    while not run.await_termination(POLL_SECONDS):
        done = max(manifests.steps(), default=-1) + 1
        progress(completed=done)
        if not changed and done >= weeks // 2:
            run.migrate(QUERY, plan=act.new_plan, strategy=STRATEGY)
            changed = True
            progress(description=f"week by week, {act.old_plan} -> {act.new_plan}")
    seconds = time.monotonic() - began
    return performance(act, run.events, old_plan_steps(act, replays), seconds)


def old_plan_steps(act: Act, replays: Mapping[str, Replay]) -> tuple[StepDone, ...]:
    """Every step of the act as it goes when the plan is left alone, by the embedded engine.

    Its counters are those that Spark would count.
    """
    from midstream.engine import Engine

    files = {name: sorted(replays[name].folder.glob("*.parquet")) for name in act.streams}
    engine = Engine()
    for name, paths in files.items():
        engine.create_stream(name, parquet.read_schema(paths[0]), timestamp="ts", lateness=LATENESS)
    engine.add_query(QUERY, act.sql, plan=act.old_plan)
    for week in range(max(map(len, files.values()))):
        engine.push({name: parquet.read_table(paths[week]) for name, paths in files.items()})
    return tuple(event for event in engine.events if isinstance(event, StepDone))


def performance(act: Act, events: Iterable[Event], alone: tuple[StepDone, ...], seconds: float) -> Performance:
    """The act in figures. The step in which the plan changed counts to the new plan, the change's own cost included."""
    happened = list(events)
    steps = [event for event in happened if isinstance(event, StepDone)]
    begun = next((event.step for event in happened if isinstance(event, MigrationBegun)), None)
    cost = sum(event.comparisons for event in happened if isinstance(event, MigrationEnded))
    parts = [steps] if begun is None else [[s for s in steps if s.step < begun], [s for s in steps if s.step >= begun]]
    phases = tuple(
        Phase(
            part[0].step,
            part[-1].step,
            plan,
            sum(sum(s.rows_in.values()) for s in part),
            sum(sum(s.rows_out.values()) for s in part),
            sum(s.comparisons for s in part),
            sum(s.comparisons for s in alone if part[0].step <= s.step <= part[-1].step),
        )
        for part, plan in zip(parts, (act.old_plan, act.new_plan), strict=False)
        if part
    )
    return Performance(phases, begun, cost, seconds)
