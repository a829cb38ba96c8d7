"""Manifests, large and small, and what tests of their log do with them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from midstream.checkpoint.manifest_log import ManifestLog
from midstream.checkpoint.writer import Writer
from midstream.commands.migrate import Migrate
from midstream.model.counters import Counters
from midstream.model.ids import LaneId, StateId
from midstream.model.manifest import ChunkRef, LaneState, Manifest, Published, QueryEntry, StateListing, StreamProgress
from midstream.model.schema import StreamSchema
from tests.unit.building import unbound

A = StreamSchema("A", pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))]), "ts", 5, 7)


def full(step: int, job: str = "naïve 漢字") -> Manifest:
    chunk = ChunkRef(f"A.lane0/{step:06d}-base", 10, 640, 0xDEADBEEF, 3, {"ts": (1, 2), "rows:A": (5, 2**63 - 1)})
    return Manifest(
        job=job,
        step=step,
        seed=42,
        lanes=3,
        streams={"A": A},
        progress={"A": StreamProgress(5, 4, None, 10, 1, 2)},
        queries={"q": QueryEntry(unbound("SELECT …"), "(A B)", 0, "k", {"format": "parquet"}, Counters(rows_in=3))},
        lane_states={
            LaneId("single", 0): LaneState(
                {StateId("A", "0", "scan"): StateListing((chunk,), 9, 13)}, {"q": {"phase": [1, None, 0.5]}}
            )
        },
        last_command=3,
        pending=(Migrate("q", "(B A)"),),
        published=Published(read={"A": (f"/in/{step}.parquet",)}),
    )


def small(step: int, job: str = "") -> Manifest:
    return Manifest(job=job, step=step)


def file_of(log: ManifestLog, step: int) -> Path:
    return log.root / f"{step:012d}.json"


def publish(log: ManifestLog, *steps: int, job: str = "") -> None:
    for step in steps:
        log.publish(small(step, job))


def failing(error: OSError) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise error

    return fail


def plain(manifest: Manifest | None) -> Manifest | None:
    return replace(manifest, epochs=()) if manifest else None


def go_on(log: ManifestLog, step: int, job: str = "") -> None:
    """Publish a step as the driver does that found the newest manifest and claimed the next epoch."""
    writer = Writer.take(log, take_over=True)
    newest = log.latest()
    assert newest is not None
    writer.begin(newest)
    line = log.latest()
    assert line is not None
    writer.commit(replace(small(step, job), epochs=line.epochs))
    writer.release()
