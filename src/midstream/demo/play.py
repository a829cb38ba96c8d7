"""An act played through Spark, and also without: the input replayed file by file, the plan changed meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet

from midstream.checkpoint.folders import Folders
from midstream.demo.acts import LATENESS, ONE_NODE, Act
from midstream.demo.flights import Replay, declare_within_km
from midstream.demo.performance import Performance, performance
from midstream.model.events import Event, StepDone
from midstream.model.optimization import MODE_OFF, Mode

QUERY = "flights"
STRATEGY = "moving_state"
POLL_SECONDS = 0.05


def play(
    act: Act, replays: Mapping[str, Replay], folder: Path, session: Any, cores: int, progress: Callable[..., None]
) -> Performance:
    """Run the act through Spark until its input is used up. The plan is changed when half of the files are done.

    Where the act names a spread, the query goes from one node over to several instead; where it names neither, the
    optimizer decides. State goes to `checkpoint` and results to `results` below the folder. `progress` is called with
    the files done (`completed`) and the work at hand (`description`).
    """
    import midstream as ms

    declare_within_km()
    began = time.monotonic()
    checkpoint, half = folder / "checkpoint", replays[act.streams[0]].span.files // 2
    job = ms.Job(session, checkpoint=str(checkpoint), lanes=cores)
    for name in act.streams:
        files = str(replays[name].folder)
        schema = session.read.parquet(files).schema
        frame = session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(files)
        job.stream(name, frame, timestamp="ts", lateness=LATENESS)
    job.query(QUERY, act.sql, act.old_plan, ms.sinks.files(folder / "results"), **_one_node(act))
    if act.is_optimized:
        job.optimize(QUERY, mode="auto")
    run = job.start(trigger={"availableNow": True})
    manifests, changed = Folders(str(checkpoint)).manifests, False
    while not run.await_termination(POLL_SECONDS):
        done = max(manifests.steps(), default=-1) + 1
        progress(completed=done)
        if not act.is_optimized and not changed and done >= half:
            changed = True
            progress(description=f"file by file, {_change(act, run)}")
    seconds = time.monotonic() - began
    return performance(act.begins, run.events, rehearse(act, replays, MODE_OFF).steps, seconds)


def _one_node(act: Act) -> dict[str, Any]:
    return {"spread": ONE_NODE, "nodes": 1} if act.spread else {}


def _change(act: Act, run: Any) -> str:
    # The text is shown to the reader.
    if act.new_plan is None:
        run.spread(QUERY, act.spread, nodes=act.nodes)
        return f"{act.spread} over {act.nodes} nodes"
    run.migrate(QUERY, plan=act.new_plan, strategy=STRATEGY)
    return f"{act.old_plan} -> {act.new_plan}"


@dataclass(frozen=True)
class Rehearsal:
    """An act done by the embedded engine: what happened, and the seconds that each of its steps took."""

    events: tuple[Event, ...]
    seconds: tuple[float, ...]

    @property
    def steps(self) -> tuple[StepDone, ...]:
        """The steps; their counters are those that Spark would count."""
        return tuple(event for event in self.events if isinstance(event, StepDone))


def rehearse(act: Act, replays: Mapping[str, Replay], mode: Mode) -> Rehearsal:
    """Run the act by the embedded engine, without a change except those that the optimizer makes in a mode."""
    from midstream.embedded import Engine

    declare_within_km()
    files = {name: replays[name].files for name in act.streams}
    engine, seconds = Engine(), list[float]()
    for name, paths in files.items():
        engine.create_stream(name, parquet.read_schema(paths[0]), timestamp="ts", lateness=LATENESS)
    engine.add_query(QUERY, act.sql, act.old_plan, **_one_node(act))
    engine.optimize(QUERY, mode=mode)
    for number in range(replays[act.streams[0]].span.files):
        tables = {name: parquet.read_table(paths[number]) for name, paths in files.items()}
        began = time.monotonic()
        engine.push(tables)
        seconds.append(time.monotonic() - began)
    return Rehearsal(tuple(engine.events), tuple(seconds))
