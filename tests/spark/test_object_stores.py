"""A job whose checkpoint and results are on an object store, over HTTP: what it costs, and what it survives."""

from __future__ import annotations

import shutil
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import midstream as ms
from midstream.checkpoint.reader import Checkpoint
from midstream.cli.main import main
from midstream.commands.add_query import AddQuery
from midstream.commands.change_query import ChangeQuery
from midstream.model.errors import WriteError
from midstream.model.events import ChunksFetched, StepDelayed
from midstream.pipeline import carried_log
from midstream.pipeline.carried_log import CarriedLog
from midstream.pipeline.commits import STEPS_BETWEEN_TIDYINGS
from midstream.spark.driver import Driver
from midstream.spark.executor import Gathered
from midstream.spark.running_job import Run
from midstream.step.plan_step import StepPlan
from midstream.storage import chunk_cache, places
from midstream.storage.objects import ObjectStorage
from midstream.storage.places import storage_at
from midstream.storage.storage_contract import Storage
from tests.object_server import CREDENTIALS, ObjectServer, Request, Trouble
from tests.spark.test_time_lines import SQL, each, feed, finish

LANES = 2
DELETE = "DELETE_MANY"
"""The kind of request that a job makes only once there is something to be removed."""


@dataclass
class World:
    """A bucket's part with a checkpoint and the results of a query, and this machine's folders."""

    spark: SparkSession
    url: str
    root: Path
    server: ObjectServer
    by_step: dict[int, list[Request]] = field(default_factory=dict)

    @property
    def storage(self) -> Storage:
        return storage_at(self.url)

    @property
    def checkpoint(self) -> str:
        return f"{self.url}/checkpoint"

    def job(self, patience: str = "60 seconds", **sinks: object) -> ms.Job:
        job = ms.Job(self.spark, self.checkpoint, lanes=LANES, patience=patience)
        for stream in "AB":
            reader = self.spark.readStream.schema("k BIGINT, ts TIMESTAMP").option("maxFilesPerTrigger", 1)
            job.stream(stream, reader.parquet(str(self.root / "in" / stream)), "ts")
        for name, sink in (sinks or {"q": ms.sinks.files(f"{self.url}/out")}).items():
            job.query(name, SQL, sink=sink)
        return job

    def do(self, *seconds: int) -> Run:
        """Feed, and run a job until it has done what there is: a step a second."""
        feed(self.root, *seconds)
        return finish(self.job().start({"availableNow": True}))

    def results(self, place: str = "out") -> dict[int, int]:
        """How many results of each second stand in a sink."""
        found = Counter[int]()
        for name, _ in self.storage.walk(place):
            if "/step=" in name and "_staging" not in name:
                times = pq.read_table(pa.BufferReader(self.storage.read(name)))["a"].to_pylist()
                found.update(int(value.timestamp()) for value in times)
        return dict(sorted(found.items()))

    def copy(self, source: str, target: str) -> None:
        self.storage.remove_folder(target)
        self.storage.copy_all({name: target + name[len(source) :] for name, _ in self.storage.walk(source)})

    def staged(self) -> list[str]:
        return [name for name, _ in self.storage.walk() if "staging" in name and not name.endswith(".probe")]

    def leave(self) -> None:
        """From now on everything happens on another machine: nothing is on this one's disk."""
        for folder in ("cache", "work"):
            shutil.rmtree(self.root / folder, ignore_errors=True)


@pytest.fixture
def world(
    spark: SparkSession,
    bucket: str,
    object_server: ObjectServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> World:
    for name, folder in ((chunk_cache.FOLDER, "cache"), (places.WORK, "work")):
        monkeypatch.setenv(name, str(tmp_path / folder))
        monkeypatch.setitem(spark.sparkContext.environment, name, str(tmp_path / folder))  # That of its tasks.
    monkeypatch.setattr(carried_log, "LARGE", 2_000)  # Files of Spark's log that are large are short here.
    # A job looks for a command to stop by the clock: a step that is slow would count more requests than its own.
    monkeypatch.setattr("midstream.spark.running_job._LISTENS_EVERY_FAR", 600.0)
    found, original = World(spark, bucket, tmp_path, object_server), Driver.fold

    def fold(self: Driver, batch: DataFrame, number: int) -> None:
        object_server.requests()
        original(self, batch, number)
        # The times of steps are written beside them, every some seconds.
        found.by_step[number] = [one for one in object_server.requests() if "/times/" not in f"{one.path}/"]

    monkeypatch.setattr(Driver, "fold", fold)
    return found


def test_requests_of_a_step_and_a_start_on_another_machine(world: World) -> None:
    """Step 50 costs what step 5 does. Then another machine goes on, and goes back."""
    run = world.do(*range(52))
    assert world.results() == each(range(52))
    few, many = (Counter(one.kind for one in world.by_step[step] if one.kind != DELETE) for step in (5, 50))
    assert few == many, [
        (step, one.path[-24:]) for step in (5, 50) for one in world.by_step[step] if one.kind == "LIST"
    ]
    for step in range(2, 52):
        counted = Counter(one.kind for one in world.by_step[step])
        assert sum(counted.values()) <= 8 + 8 * LANES, f"step {step}: {counted}"
        assert counted[DELETE] <= 4, "what is old goes in a few requests"
        assert counted["GET"] == 0, [(step, one.path) for one in world.by_step[step] if one.kind == "GET"]
        # When a driver tidies it looks at the manifests, of which there are always as many, the first time at all.
        most = 0 if step % STEPS_BETWEEN_TIDYINGS else 16 if step > STEPS_BETWEEN_TIDYINGS else 1_000
        assert sum(one.listed for one in world.by_step[step]) <= most, "a folder is listed that grows"
    fetched = [event for event in run.events if isinstance(event, ChunksFetched)]
    assert fetched[-1].hits > 0 and fetched[-1].misses == 0 and fetched[-1].cache_bytes > 0
    assert world.staged() == []
    text = b"".join(world.storage.read(name).to_pybytes() for name, _ in world.storage.walk("checkpoint"))
    assert CREDENTIALS["AWS_SECRET_ACCESS_KEY"].encode() not in text
    assert len(world.storage.names("checkpoint/spark")) <= 2 * carried_log._KEPT, "of Spark's log what is old goes"

    world.leave()
    run = world.do(52, 53)
    assert world.results() == each(range(54))
    seen = Checkpoint.open(world.checkpoint)
    assert seen.status(seen.report())["cache"] == run.status()["cache"]

    world.leave()
    assert main(["rewind", world.checkpoint, "50"]) == 0
    assert world.results() == each(range(51))
    assert main(["status", world.checkpoint, "--json"]) == main(["explain", world.checkpoint, "q"]) == 0
    world.do(54)
    assert world.results() == each(range(55))


def test_a_checkpoint_restored_while_its_sink_is_ahead(world: World) -> None:
    world.do(0)
    world.copy("checkpoint", "backup")
    world.do(1, 2)
    world.copy("backup", "checkpoint")
    with pytest.raises(ms.CheckpointError, match=rf"step 2.*newest step is 0.*midstream rewind {world.checkpoint} 0"):
        world.do(3)
    assert world.results() == each(range(3)), "a job that is refused changes nothing"
    assert main(["rewind", world.checkpoint, "0"]) == 0
    world.do()
    assert world.results() == each(range(4))


def test_going_back_before_a_query_was_added_and_changed(world: World) -> None:
    commands = Checkpoint.open(world.do(0) and world.checkpoint).commands
    commands.append(AddQuery("added", SQL))
    commands.append(ChangeQuery("q", f"{SQL.replace('WINDOW', 'AND A.k < 0 WINDOW')}"))
    world.do(1, 2)
    assert world.results("checkpoint/results/added") == each(range(1, 3)) and world.results() == each(range(1))
    assert main(["rewind", world.checkpoint, "0"]) == 0
    assert world.results("checkpoint/results/added") == {} and world.results() == each(range(1))
    world.storage.remove_folder("checkpoint/commands")
    commands.append(AddQuery("added", SQL))
    world.do(3)
    assert world.results() == each(range(4))
    assert world.results("checkpoint/results/added") == each(range(1, 4))


@pytest.mark.parametrize("paused", ["before the commit", "before the sink"])
def test_a_second_driver_and_one_that_wakes(world: World, monkeypatch: pytest.MonkeyPatch, paused: str) -> None:
    """The first is suspended in a step; the second is refused, takes over, goes on; then the first one wakes."""
    feed(world.root, 0, 1)
    reached, go_on = threading.Event(), threading.Event()
    commit, copy, text = Driver._commit, ObjectStorage.copy_all, CarriedLog._text

    def pause() -> None:
        if not reached.is_set():
            reached.set()
            assert go_on.wait(120)

    def committed(self: Driver, plan: StepPlan, gathered: Gathered) -> object:
        if paused == "before the commit":
            pause()
        return commit(self, plan, gathered)

    def copied(self: ObjectStorage, copies: dict[str, str]) -> None:
        if paused == "before the sink":
            pause()
        copy(self, copies)

    def another(self: CarriedLog, path: str) -> str:
        """In one JVM, a query that Spark knows by the same name would wait for the other one to end."""
        return f'{{"id":"{uuid.uuid4()}"}}' if path == "metadata" else text(self, path)

    monkeypatch.setattr(CarriedLog, "_text", another)
    monkeypatch.setattr(Driver, "_commit", committed)
    monkeypatch.setattr(ObjectStorage, "copy_all", copied)
    first = world.job().start({"processingTime": "100 milliseconds"})
    assert reached.wait(120)
    with pytest.raises(ms.HeldCheckpointError, match="stop that run first"):
        world.job().start()
    finish(world.job().start({"availableNow": True}, take_over=True))
    assert world.results() == each(range(2))
    go_on.set()
    with pytest.raises(ms.LostCheckpointError, match="has taken the checkpoint over"):
        first.await_termination(120)
    assert world.results() == each(range(2))
    world.do(2)
    assert world.results() == each(range(3)) and world.staged() == []


def test_killed_while_what_a_function_was_given_is_removed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(Exception):
        pass

    called: list[tuple[int, int]] = []
    remove = ObjectStorage.remove

    def half(self: ObjectStorage, names: Iterable[str]) -> None:
        given = list(names)
        if given and "staging/" in self.url:
            remove(self, given[:1])
            raise Killed
        remove(self, given)

    def start() -> None:
        finish(
            world.job(q=lambda frame, step, query: called.append((step, frame.count()))).start({"availableNow": True})
        )

    feed(world.root, 0)
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(ObjectStorage, "remove", half)
        start()
    feed(world.root, 1)
    start()
    assert called == [(0, 5), (1, 5)]


FAULTS = {
    "expired credentials": (Trouble(403, "ExpiredToken"), "403 Forbidden ExpiredToken"),
    "denied writes": (Trouble(403, "AccessDenied", methods=("PUT",)), "403 Forbidden AccessDenied"),
    "a server that is gone for a while": (Trouble(503, "ServiceUnavailable"), "503 Service Unavailable"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_store_that_is_mended(world: World, fault: str) -> None:
    """The step fails whole, says what and where, and the job goes on by itself once that is mended."""
    trouble, said = FAULTS[fault]
    world.do(0)
    feed(world.root, 1, 2)
    run = world.job().start({"processingTime": "100 milliseconds"})
    with world.server.in_trouble(trouble):
        delayed = until(lambda: run.delayed)
        assert said in delayed.reason and f"(at {world.url}" in delayed.reason
        assert CREDENTIALS["AWS_SECRET_ACCESS_KEY"] not in delayed.reason and "http://" not in delayed.reason
        assert run.state == "running"
    until(lambda: run.status()["step"] == 2 or None)
    run.stop()
    assert world.results() == each(range(3))


def test_a_fault_that_lasts_ends_the_job_which_goes_on_when_started_again(world: World) -> None:
    world.do(0)
    feed(world.root, 1)
    denied = Trouble(403, "AccessDenied", part="/store/", methods=("PUT",))
    with world.server.in_trouble(denied), pytest.raises(WriteError, match="AccessDenied") as caught:
        finish(world.job(patience="0 seconds").start({"availableNow": True}))
    assert "credentials" in caught.value.remedy
    world.do(2)
    assert world.results() == each(range(3))


def test_a_slow_store_only_takes_longer(world: World) -> None:
    with world.server.in_trouble(Trouble(0, seconds=0.1)):
        world.do(0)
    assert world.results() == each(range(1))


def until(look: Callable[[], object]) -> StepDelayed:
    """What it finds, once it finds something."""
    waiting = threading.Event()
    for _ in range(1200):
        if found := look():
            return found  # type: ignore[return-value]
        waiting.wait(0.1)
    raise AssertionError("it never came")
