"""A checkpoint as a job leaves it, and a job in miniature that serves one."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from midstream.checkpoint.command_log import CommandLog
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.embedded import Engine
from midstream.model.codec import encode
from midstream.model.manifest import Manifest
from midstream.state.memory_store import MemoryStore
from midstream.step.fold import step

SQL = """SELECT A.k, B.v FROM A [RANGE 20 SECONDS], B [RANGE 20 SECONDS], C [RANGE 20 SECONDS]
         WHERE A.k = B.k AND B.k = C.k"""
ROWS = pa.table({"k": [1, 2, 3], "ts": pa.array([0, 1, 2], pa.timestamp("us")), "v": [0.1, 0.2, 0.3]})


def first_manifest() -> Manifest:
    engine = Engine(lanes=2)
    for stream in "ABC":
        engine.create_stream(stream, "k BIGINT, ts TIMESTAMP, v DOUBLE", timestamp="ts", lateness="1 second")
    engine.add_query("pairs", SQL, plan="((A B) C)")
    return engine.manifest


class SmallJob:
    """Takes commands and does steps as a job does, in this process."""

    def __init__(self, path: Path) -> None:
        self.path, self.store = path, MemoryStore()
        self.manifests, self.commands = ManifestLog(path / "manifests"), CommandLog(path / "commands")
        self.manifest = first_manifest()

    def step(self, rows: pa.Table = ROWS) -> None:
        taken = self.commands.after(self.manifest.last_command)
        commands = [*self.manifest.pending, *(command for _, command in taken)]
        result = step(self.manifest, dict.fromkeys("ABC", rows), commands, self.store)
        last = taken[-1][0] if taken else self.manifest.last_command
        self.manifest = replace(result.manifest, last_command=last)
        events = self.path / "events" / f"{self.manifest.step:012d}.jsonl"
        events.parent.mkdir(parents=True, exist_ok=True)
        events.write_text("".join(json.dumps(encode(event)) + "\n" for event in result.events))
        self.manifests.publish(self.manifest)

    @contextmanager
    def running(self) -> Iterator[None]:
        stop = threading.Event()

        def serve() -> None:
            while not stop.wait(0.05):
                self.step(ROWS.slice(0, 0))

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


@pytest.fixture
def job(tmp_path: Path) -> SmallJob:
    small = SmallJob(tmp_path / "ckpt")
    small.step()
    return small
