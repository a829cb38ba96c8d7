"""A fault from outside that is mended: the step fails whole, says what and where, and the job goes on, exact."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import midstream as ms
from midstream.model.errors import ReadError, WriteError
from midstream.model.events import StepDelayed
from midstream.pipeline.patience import Patience
from midstream.spark.running_job import Run
from tests.crash_case import CHAIN, STREAMS
from tests.oracle.compare import assert_each_step_same, assert_same
from tests.postgresql import server
from tests.spark.crash_job import CASE, feed
from tests.spark.drive import Hooks, Place, finish, job

MEGABYTE = 1 << 20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of eight megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small disk needs the right to mount one: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def fill(disk: Path) -> None:
    with open(disk / "ballast", "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(MEGABYTE))
        except OSError:
            pass


def small_job(spark: SparkSession, place: Place, patience: str) -> ms.Job:
    """The query of three streams, its checkpoint and its answers below `disk`."""
    return job(spark, place, STREAMS, {"chain": CHAIN.cql()}, lanes=2, patience=patience)


def mended(run: Run, mend: Callable[[], object]) -> StepDelayed:
    """Mend what is wrong once the job has tried a step twice, and wait for the job's end."""
    for _ in range(600):
        delayed = run.delayed
        if delayed is not None and delayed.attempts > 1:
            break
        assert not run.await_termination(0.1), "nothing was wrong"
    assert run.status()["delayed"]["reason"] == run.delayed.reason if run.delayed else delayed
    assert run.state == "running"
    mend()
    assert run.await_termination(120), "the job hangs"
    assert delayed is not None
    return delayed


def assert_exact(place: Place) -> None:
    assert_each_step_same(place.by_step("chain", len(CASE.steps)), CASE.expected()["chain"], "chain")


@pytest.mark.parametrize("step", [1, 2])
def test_a_disk_that_was_full_needs_no_restart(
    spark: SparkSession, hooks: Hooks, tmp_path: Path, disk: Path, step: int
) -> None:
    feed(tmp_path)
    place = OnDisk(tmp_path, disk)
    hooks.at(step, lambda _: fill(disk))
    run = small_job(spark, place, "2 minutes").start({"availableNow": True})
    delayed = mended(run, (disk / "ballast").unlink)
    assert "No space left on device" in delayed.reason and str(disk) in delayed.reason and delayed.step == step
    assert [event.step for event in run.events if isinstance(event, StepDelayed)] == [step]
    assert run.delayed is None and "delayed" not in run.status()
    assert_exact(place)


def test_a_disk_that_stays_full_ends_the_job_which_goes_on_when_started_again(
    spark: SparkSession, hooks: Hooks, tmp_path: Path, disk: Path
) -> None:
    feed(tmp_path)
    place = OnDisk(tmp_path, disk)
    hooks.at(1, lambda _: fill(disk))
    with pytest.raises(WriteError, match="No space left on device") as caught:
        finish(small_job(spark, place, "0 seconds"))
    assert str(disk) in caught.value.place and "free some space" in caught.value.remedy
    assert place.manifest().step == 0 and place.by_step("chain", 2)[1] is None
    (disk / "ballast").unlink()
    finish(small_job(spark, place, "0 seconds"))
    assert_exact(place)


def test_a_right_that_was_taken_away_and_given_back(
    spark: SparkSession, hooks: Hooks, tmp_path: Path, disk: Path
) -> None:
    """The file system is mounted for reading only, which stops even an administrator."""
    feed(tmp_path)
    place = OnDisk(tmp_path, disk)

    def mount(how: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{how}", disk], check=True)

    hooks.at(1, lambda _: mount("ro"))
    delayed = mended(small_job(spark, place, "2 minutes").start({"availableNow": True}), lambda: mount("rw"))
    assert "cannot write" in delayed.reason and "let this user write there" in delayed.reason
    assert_exact(place)


def test_a_folder_of_results_that_vanished_and_came_back(spark: SparkSession, hooks: Hooks, tmp_path: Path) -> None:
    """As when a mount is lost: where the folder was, nothing can be made."""
    feed(tmp_path)
    place = Place(tmp_path)
    folder, away = tmp_path / "answers", tmp_path / "away"

    def lose(_: object) -> None:
        folder.rename(away)
        folder.touch()

    def find() -> None:
        folder.unlink()
        away.rename(folder)

    hooks.at(1, lose)
    delayed = mended(small_job(spark, place, "2 minutes").start({"availableNow": True}), find)
    assert str(folder) in delayed.reason
    assert_exact(place)


def test_a_database_that_was_restarted(spark: SparkSession, hooks: Hooks, tmp_path: Path) -> None:
    feed(tmp_path)
    place = Place(tmp_path)
    with server() as database:
        sink = {"type": "postgresql", "table": "results", "dsn": database.dsn}
        found = ms.Job(spark, place.checkpoint, 1, patience="2 minutes")
        for spec in STREAMS:
            found.stream(spec.name, place.frame(spark, spec), timestamp=spec.timestamp, lateness=spec.lateness)
        found.query("chain", CHAIN.cql(), sink=sink)
        hooks.at(1, lambda _: database.stop())
        delayed = mended(found.start({"availableNow": True}), database.start)
        assert "PostgreSQL" in delayed.reason and "see that the server runs" in delayed.reason
        rows = database.execute("SELECT a, b, c FROM results")
    assert_same(pa.table(dict(zip("abc", zip(*rows, strict=True), strict=True))), CASE.expected()["chain"])


def test_a_function_that_cannot_reach_its_system(spark: SparkSession, tmp_path: Path) -> None:
    feed(tmp_path)
    place, failures = Place(tmp_path), iter([OSError("no route to host")] * 3)
    taken: dict[int, int] = {}

    def deliver(frame: DataFrame, step: int, _: str) -> None:
        for failure in failures:
            raise failure
        taken[step] = frame.count()

    found = ms.Job(spark, place.checkpoint, 1)
    for spec in STREAMS:
        found.stream(spec.name, place.frame(spark, spec), timestamp=spec.timestamp, lateness=spec.lateness)
    run = finish(found.query("chain", CHAIN.cql(), sink=deliver))
    assert sum(taken.values()) == CASE.expected()["chain"].table.num_rows
    assert run.delayed is None


def test_nobody_waits_for_a_step_of_a_job_that_is_stopped(
    spark: SparkSession, hooks: Hooks, tmp_path: Path, disk: Path
) -> None:
    feed(tmp_path)
    hooks.at(0, lambda _: fill(disk))
    run = small_job(spark, OnDisk(tmp_path, disk), "1 hour").start({"availableNow": True})
    while run.delayed is None:
        time.sleep(0.01)
    began = threading.Thread(target=run.stop)
    began.start()
    began.join(60)
    assert not began.is_alive() and run.state == "stopped"


def test_patience_is_for_faults_from_outside() -> None:
    tries = []

    def step() -> None:
        tries.append(1)
        raise ms.CheckpointError("damaged")

    with pytest.raises(ms.CheckpointError, match="damaged"):
        Patience(60_000_000, lambda: False).do(3, step)
    assert tries == [1]


@pytest.mark.parametrize("fault", [ReadError, WriteError, TimeoutError])
def test_patience_ends(fault: type[Exception]) -> None:
    tries = []

    def step() -> None:
        tries.append(1)
        raise fault("not now")

    with pytest.raises(fault, match="not now"):
        Patience(150_000, lambda: False).do(3, step)
    assert len(tries) > 1


class OnDisk(Place):
    """A place whose checkpoint and answers are on the small disk, its input is not."""

    def __init__(self, root: Path, disk: Path) -> None:
        super().__init__(root)
        object.__setattr__(self, "disk", disk)

    disk: Path

    @property
    def checkpoint(self) -> Path:
        return self.disk / "checkpoint"

    def answers(self, query: str) -> Path:
        return self.disk / "answers" / query
