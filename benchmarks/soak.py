"""All stays flat over a month of event time: `python -m benchmarks.soak [--only HOST]`.

Five queries of every kind run for a month, cut into thousands of steps, while plans migrate, a guest query comes and
goes, and lanes are rescaled; all of that recurs, so that a quarter of the run is like every other. Four hosts: the
engine in memory, the same fold over chunk files and a manifest log as a job keeps them, the engine on a checkpoint, and
(for fewer steps) a job on Spark, both with everything in their checkpoint but what they put out; these two keep events,
commands and Spark's own log for fewer steps than they do by default, so that the run is longer than that. Ends with 1
if anything measured is larger in the last quarter of the run than in the second.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import mean

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import track
from rich.table import Table

import midstream as ms
from midstream.checkpoint import command_log, event_log
from midstream.checkpoint.command_log import CommandLog
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.commands.add_query import AddQuery
from midstream.commands.drop_query import DropQuery
from midstream.commands.migrate import Migrate
from midstream.commands.rescale import Rescale
from midstream.model.codec import encode
from midstream.model.command import Command
from midstream.model.manifest import Manifest
from midstream.model.schema import StreamSchema
from midstream.step.fold import step as fold
from midstream.storage.files import FileStore
from midstream.storage.sweep import sweep

SCHEMA = pa.schema([("k", pa.int64()), ("x", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("v", pa.float64())])
STREAMS, ROWS, KEYS = "ABC", 100, 60
MONTH = 30 * 24 * 3600 * 1_000_000
"""Microseconds."""

QUERIES = {
    "triple": "SELECT A.k, B.v, C.v AS cv FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW {8}",
    "chain": "SELECT A.k, C.x FROM A, B, C WHERE A.k = B.k AND B.x = C.x AND A.v > 0.7 WINDOW {5}",
    "near": "SELECT A.v, C.v AS cv FROM A [RANGE {5}], C [ROWS 500] WHERE ABS(A.v - C.v) < 0.01",
    "counts": "SELECT A.k, COUNT(*) AS n FROM A, B WHERE A.k = B.k WINDOW {4} GROUP BY A.k EVERY {2}",
    "alone": "SELECT * FROM A [RANGE {10}] EXCEPT ON (k) B [RANGE {3}]",
}
"""The queries; a number in braces is a duration in steps."""

GUEST = "SELECT B.k, C.v FROM B, C WHERE B.k = C.k WINDOW {6}"
KEPT = 32
"""Steps for which a checkpoint keeps events, commands and Spark's log."""

SWEEP_EVERY = 16

Sample = Mapping[str, float]


@dataclass(frozen=True)
class Month:
    """A month in so many steps; what recurs does so every eighth of it."""

    steps: int

    @property
    def span(self) -> int:
        """Microseconds of a step."""
        return MONTH // self.steps

    def query(self, text: str) -> str:
        """A query's text, its durations written out."""
        return re.sub(r"\{(\d+)\}", lambda found: f"{int(found[1]) * self.span // 1000} MILLISECONDS", text)

    def rows(self, step: int) -> dict[str, pa.Table]:
        """The rows that a step brings; the same on every call."""
        tables = {}
        for stream in STREAMS:
            random = np.random.default_rng([0, ord(stream), step])
            times = np.sort(random.integers(step * self.span, (step + 1) * self.span, ROWS))
            columns = [
                pa.array(random.integers(0, KEYS, ROWS)),
                pa.array(random.integers(0, KEYS, ROWS)),
                pa.array(times).cast(SCHEMA.field("ts").type),
                pa.array(random.random(ROWS)),
            ]
            tables[stream] = pa.Table.from_arrays(columns, schema=SCHEMA)
        return tables

    def begin(self) -> Iterator[Command]:
        """What begins with the first step."""
        yield from (AddQuery(name, self.query(sql)) for name, sql in QUERIES.items())

    def commands(self, step: int) -> Iterator[Command]:
        """What is asked of the job before a step."""
        period = self.steps // 8
        for eighth, command in enumerate(
            (
                Migrate("triple", "(A (B C))"),
                AddQuery("guest", self.query(GUEST)),
                Rescale(2),
                Migrate("chain", "[A: B C | B: A C | C: B A]"),
                DropQuery("guest"),
                Migrate("triple", "((A B) C)"),
                Rescale(1),
                Migrate("chain", "((A B) C)"),
            )
        ):
            if step % period == (eighth + 1) * period // 9:
                yield command


@dataclass
class Soak:
    """What was measured of one host after each step."""

    host: str
    samples: list[Sample] = field(default_factory=list)

    def quarter(self, name: str, number: int) -> float:
        """The mean of a measure over a quarter of the run, counted from zero."""
        size = len(self.samples) // 4
        return mean(sample[name] for sample in self.samples[number * size : (number + 1) * size])

    def grown(self) -> list[str]:
        """The measures that are larger in the last quarter than in the second."""
        return [name for name in self.samples[0] if self.quarter(name, 3) > self.quarter(name, 1) * _allowed(name)]


def _allowed(name: str) -> float:
    """How many times the second quarter the last may be: compaction comes in waves, numbers get more digits."""
    return 1.10 if name == "resident MB" else 1.03


def resident() -> float:
    """Megabytes of this process that are in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def measured(manifest: Manifest) -> dict[str, float]:
    """What a manifest says of the state, and its own size."""
    listings = [listing for lane in manifest.lane_states.values() for listing in lane.states.values()]
    chunks = [chunk for listing in listings for chunk in listing.chunks]
    return {
        "state rows": sum(listing.live for listing in listings),
        "state KB": sum(chunk.bytes for chunk in chunks) / 2**10,
        "chunks": len(chunks),
        "manifest KB": len(json.dumps(encode(manifest))) / 2**10,
    }


def folder_size(folder: Path) -> tuple[int, float]:
    """How many files a folder has, and their kilobytes."""
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return len(sizes), sum(sizes) / 2**10


def checkpoint_sizes(checkpoint: Path) -> dict[str, float]:
    """How many files the folders of a checkpoint have, and their kilobytes."""
    sizes: dict[str, float] = {}
    for name in ("store", "manifests", "events", "commands", "staging"):
        sizes[f"{name} files"], sizes[f"{name} KB"] = folder_size(checkpoint / name)
    return sizes


def in_memory(month: Month, watch: Callable[[int], Iterator[int]]) -> Soak:
    """The embedded engine."""
    engine = ms.Engine()
    samples = ({**measured(engine.manifest), "resident MB": resident()} for _ in pushed(engine, month, watch))
    return Soak("embedded, in memory", list(samples))


def pushed(engine: ms.Engine, month: Month, watch: Callable[[int], Iterator[int]]) -> Iterator[int]:
    """The steps, each once an engine has done it: a push a step."""
    for stream in STREAMS:
        engine.create_stream(stream, SCHEMA, timestamp="ts")
    for command in month.begin():
        tell(engine, command)
    for step in watch(month.steps):
        for command in month.commands(step):
            tell(engine, command)
        engine.push(month.rows(step))
        yield step


def tell(engine: ms.Engine, command: Command) -> None:
    """Give a command to an engine by its own methods."""
    match command:
        case AddQuery(query, sql):
            engine.add_query(query, sql)
        case DropQuery(query):
            engine.drop_query(query)
        case Migrate(query, plan, strategy):
            engine.migrate(query, plan=plan, strategy=strategy)
        case Rescale(lanes):
            engine.rescale(lanes)


def in_files(month: Month, watch: Callable[[int], Iterator[int]]) -> Soak:
    """The fold as a job runs it, without Spark: chunk files, a log of ten manifests, a sweep now and then."""
    soak = Soak("fold over files")
    with tempfile.TemporaryDirectory(prefix="midstream-soak-") as folder:
        root = Path(folder)
        store, log = FileStore(root / "store"), ManifestLog(root / "manifests")
        manifest = Manifest(streams={stream: StreamSchema(stream, SCHEMA, "ts") for stream in STREAMS})
        for step in watch(month.steps):
            commands = (*(month.begin() if step == 0 else ()), *month.commands(step))
            manifest = fold(manifest, month.rows(step), commands, store).manifest
            log.publish(manifest)
            if step % SWEEP_EVERY == 0:
                sweep(root / "store", log.kept())
            (files, size), (manifests, _) = folder_size(root / "store"), folder_size(root / "manifests")
            sample = {"store files": files, "store KB": size, "manifest files": manifests, "resident MB": resident()}
            soak.samples.append({**measured(manifest), **sample})
    return soak


def on_a_checkpoint(month: Month, watch: Callable[[int], Iterator[int]]) -> Soak:
    """The embedded engine, a push a step; its checkpoint is measured after each."""
    soak = Soak("embedded, on a checkpoint")
    with tempfile.TemporaryDirectory(prefix="midstream-soak-") as folder, kept_for(KEPT):
        checkpoint = Path(folder) / "checkpoint"
        with ms.Engine(checkpoint=checkpoint, durable=False) as engine:
            for _ in pushed(engine, month, watch):
                sizes = checkpoint_sizes(checkpoint)
                soak.samples.append({**measured(engine.manifest), **sizes, "resident MB": resident()})
    return soak


@contextmanager
def kept_for(steps: int) -> Iterator[None]:
    """Keep events and commands for fewer steps than jobs do."""
    before = event_log.STEPS_KEPT, command_log.COMMANDS_KEPT
    event_log.STEPS_KEPT, command_log.COMMANDS_KEPT = steps, steps // 4
    try:
        yield
    finally:
        event_log.STEPS_KEPT, command_log.COMMANDS_KEPT = before


def on_spark(month: Month, watch: Callable[[int], Iterator[int]]) -> Soak:
    """A job on Spark: a step a micro-batch. The checkpoint is measured after each step."""
    from midstream.spark.session import local_session

    soak, progress = Soak("job on Spark"), watch(month.steps)
    with tempfile.TemporaryDirectory(prefix="midstream-soak-") as folder, kept_for(KEPT):
        root = Path(folder)
        for step in range(month.steps):
            for stream, table in month.rows(step).items():
                (root / "in" / stream).mkdir(parents=True, exist_ok=True)
                path = root / "in" / stream / f"{step:05d}.parquet"
                pq.write_table(table, path)
                os.utime(path, (step, step))  # Spark's order; files written in a moment may else have the same time.
        checkpoint = root / "checkpoint"
        log, commands = ManifestLog(checkpoint / "manifests"), CommandLog(checkpoint / "commands")

        def sink(results: object, step: int, query: str) -> None:
            for command in month.commands(step + 1):
                commands.append(command)
            sample = {**measured(log.read(step)), **checkpoint_sizes(checkpoint)}
            for name in ("offsets", "commits"):
                sizes = [folder_size(one) for one in checkpoint.glob(f"spark/*/{name}")]
                sample[f"Spark's {name}"] = sum(files for files, _ in sizes)
            soak.samples.append(sample)
            next(progress, None)

        spark = local_session(cores=2, settings={"spark.sql.streaming.minBatchesToRetain": str(KEPT)})
        job = ms.Job(spark, checkpoint=checkpoint, lanes=1)
        for stream in STREAMS:
            reader = spark.readStream.schema("k BIGINT, x BIGINT, ts TIMESTAMP, v DOUBLE")
            frame = reader.option("maxFilesPerTrigger", 1).parquet(str(root / "in" / stream))
            job.stream(stream, frame, timestamp="ts")
        for name, sql in QUERIES.items():
            job.query(name, month.query(sql), sink=sink if name == "triple" else None)
        job.start(trigger={"availableNow": True}).await_termination()
        spark.stop()
    return soak


def _watch(name: str, console: Console, steps: int) -> Iterator[int]:
    yield from track(range(steps), f"soak: {name}", console=console)


HOSTS: dict[str, Callable[[Month, Callable[[int], Iterator[int]]], Soak]] = {
    "memory": in_memory,
    "files": in_files,
    "checkpoint": on_a_checkpoint,
    "spark": on_spark,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Soak the hosts; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=2_000)
    parser.add_argument("--spark-steps", type=int, default=384)
    parser.add_argument("--only", action="append", choices=HOSTS)
    options = parser.parse_args(arguments)
    console, grown = Console(highlight=False), False
    for name in options.only or HOSTS:
        steps = options.spark_steps if name == "spark" else options.steps
        gc.collect()
        soak = HOSTS[name](Month(steps), partial(_watch, name, console))
        table = Table("measure", "second quarter", "last quarter", "", title=f"{soak.host}: {steps} steps")
        worse = soak.grown()
        for measure in soak.samples[0]:
            verdict = "[red]GROWS" if measure in worse else "flat"
            table.add_row(measure, f"{soak.quarter(measure, 1):,.1f}", f"{soak.quarter(measure, 3):,.1f}", verdict)
        console.print(table)
        grown = grown or bool(worse)
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
