"""Run a case of the oracle as a job on Spark: each step is one file per stream, taken in one micro-batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import midstream as ms
from midstream.checkpoint.command_log import CommandLog
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.commands.add_query import AddQuery
from midstream.commands.drop_query import DropQuery
from midstream.commands.migrate import Migrate as MigrateCommand
from midstream.commands.rescale import Rescale as RescaleCommand
from midstream.commands.spread import Spread as SpreadCommand
from midstream.model.command import Command
from midstream.model.events import Event
from midstream.model.manifest import Manifest
from midstream.spark.driver import Driver
from midstream.spark.running_job import Run
from tests.oracle.answer import Answer
from tests.oracle.compare import assert_each_step_same, assert_ordered
from tests.oracle.spec import StreamSpec
from tests.property.drive import Action, Case, Migrate, Rescale, Restart, Spread

SHORT_LIVED = {
    "spark.driver.memory": "2g",
    # The second compiler of the JVM never earns what it costs in a minute.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""What makes a session start quickly."""

Hook = Callable[[Driver], None]


@dataclass
class Hooks:
    """What to do on the driver right before a step, once."""

    by_step: dict[int, list[Hook]] = field(default_factory=dict)

    def at(self, step: int, hook: Hook) -> None:
        self.by_step.setdefault(step, []).append(hook)

    def give(self, step: int, command: Command) -> None:
        self.at(step, lambda driver: void(driver.folders.commands.append(command)))


def void(_: Any) -> None:
    return None


@dataclass(frozen=True)
class Place:
    """The folders of one test: input, checkpoint, answers."""

    root: Path

    @property
    def checkpoint(self) -> Path:
        return self.root / "checkpoint"

    def answers(self, query: str) -> Path:
        return self.root / "answers" / query

    def feed(self, stream: str, step: int, table: pa.Table) -> None:
        """Put one file of input in place; Spark takes them by age."""
        self.feed_together(step, {stream: table})

    def feed_together(self, step: int, tables: Mapping[str, pa.Table]) -> None:
        """Put a file for each stream in place, one right after the other: a job that runs finds them in one batch."""
        ready = []
        for stream, table in tables.items():
            folder = self.root / "in" / stream
            folder.mkdir(parents=True, exist_ok=True)
            temporary = self.root / f"{stream}.tmp"
            pq.write_table(table, temporary)
            os.utime(temporary, (1_600_000_000 + step, 1_600_000_000 + step))
            ready.append((temporary, folder / f"{step:05d}.parquet"))
        for temporary, final in ready:
            temporary.rename(final)

    def frame(self, spark: SparkSession, spec: StreamSpec) -> DataFrame:
        schema = from_arrow_schema(spec.schema, prefer_timestamp_ntz=True)
        (self.root / "in" / spec.name).mkdir(parents=True, exist_ok=True)
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.root / "in" / spec.name))

    def manifest(self) -> Manifest:
        found = ManifestLog(self.checkpoint / "manifests").latest()
        assert found is not None
        return found

    def by_step(self, query: str, steps: int) -> list[pa.Table | None]:
        """What stands in the query's sink."""
        return [read_folder(self.answers(query) / f"step={step:08d}") for step in range(steps)]


def feed_steps(streams: Sequence[StreamSpec], steps: Sequence[Mapping[str, pa.Table]], root: Path) -> None:
    """Put the input of a job in place, a file of each stream for each step."""
    for step, tables in enumerate(steps):
        for spec in streams:
            Place(root).feed(spec.name, step, tables.get(spec.name, spec.schema.empty_table()))


def read_folder(folder: Path) -> pa.Table | None:
    if not folder.is_dir():
        return None
    return pa.concat_tables([pq.read_table(file) for file in sorted(folder.glob("*.parquet"))])


def read_all(folder: Path) -> pa.Table:
    """Every row of a sink."""
    files = sorted(folder.glob("step=*/*.parquet"))
    return pa.concat_tables([pq.read_table(file) for file in files])


def job(
    spark: SparkSession,
    place: Place,
    streams: Sequence[StreamSpec],
    queries: Mapping[str, str],
    plans: Mapping[str, str] | None = None,
    lanes: int | None = None,
    tables: Mapping[str, pa.Table] | None = None,
    **options: Any,
) -> ms.Job:
    """A job over the streams' folders, and static tables, with its answers in files."""
    found = ms.Job(spark, place.checkpoint, lanes, **options)
    for spec in streams:
        frame = place.frame(spark, spec)
        timing = {"lateness": spec.lateness, "idle_timeout": spec.idle_timeout, "unit": spec.unit}
        found.stream(spec.name, frame, timestamp=spec.timestamp, **timing)
    for name, table in (tables or {}).items():
        found.table(name, table)
    for name, sql in queries.items():
        found.query(name, sql, (plans or {}).get(name), ms.sinks.files(place.answers(name)))
    return found


def giving(root: Path, commands: Mapping[int, Command]) -> None:
    """Have every driver of this process give each command right before its step, unless it has been given."""
    log, original = CommandLog(root / "checkpoint" / "commands"), Driver.fold

    def fold(self: Driver, batch: DataFrame, number: int) -> None:
        if number in commands and commands[number] not in [command for _, command in log.after(0)]:
            log.append(commands[number])
        original(self, batch, number)

    Driver.fold = fold  # type: ignore[method-assign]


def finish(job: ms.Job) -> Run:
    """Start a job and wait until it has done what there is."""
    run = job.start(trigger={"availableNow": True})
    assert run.await_termination(120), "the job hangs"
    return run


def run_case(
    spark: SparkSession,
    hooks: Hooks,
    root: Path,
    case: Case,
    plans: Mapping[str, str] | None = None,
    actions: Sequence[Action] = (),
    *,
    lanes: int = 1,
    sharing: str = "auto",
) -> list[Event]:
    """Run a case; each `Restart` ends the job before its step and starts it anew."""
    place, chosen = Place(root), dict(plans or {})
    declared = {q.name: q.spec.cql() for q in case.queries if q.since == 0 and q.until != 0}
    for query in case.queries:
        if query.since > 0 and query.until != query.since:
            sink = {"path": str(place.answers(query.name)), "format": "parquet"}
            command = AddQuery(query.name, query.spec.cql(), chosen.get(query.name), sink, history=False)
            hooks.give(query.since, command)
        if query.until is not None and query.until < len(case.steps) and query.until > query.since:
            hooks.give(query.until, DropQuery(query.name))
    for action in actions:
        if isinstance(action, Rescale):
            hooks.give(action.step, RescaleCommand(action.lanes))
        elif isinstance(action, Migrate):
            hooks.give(action.step, MigrateCommand(action.query, action.plan, action.strategy, dict(action.options)))
        elif isinstance(action, Spread):
            hooks.give(action.step, SpreadCommand(action.query, action.scheme, action.nodes))
    ends = sorted({a.step for a in actions if isinstance(a, Restart)} | {len(case.steps)})
    events: list[Event] = []
    fed = 0
    for end in ends:
        for step in range(fed, end):
            for spec in case.streams:
                place.feed(spec.name, step, case.steps[step].get(spec.name, spec.schema.empty_table()))
        fed = end
        events += finish(job(spark, place, case.streams, declared, chosen, lanes, sharing=sharing)).events
    return events


def check_case(
    spark: SparkSession,
    hooks: Hooks,
    root: Path,
    case: Case,
    plans: Mapping[str, str] | None = None,
    actions: Sequence[Action] = (),
    *,
    expected: Mapping[str, Answer] | None = None,
    lanes: int = 1,
    sharing: str = "auto",
) -> list[Event]:
    """Run a case and fail unless every step of every query is what the oracle says."""
    events = run_case(spark, hooks, root, case, plans, actions, lanes=lanes, sharing=sharing)
    for name, answer in (expected or case.expected()).items():
        found = Place(root).by_step(name, len(case.steps))
        assert_each_step_same(found, answer, name)
        if lanes == 1 and not any(isinstance(action, Rescale) for action in actions):
            assert_ordered([table for table in found if table is not None], throughout=False, label=name)
    return events
