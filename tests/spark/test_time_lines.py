"""What operators do to a checkpoint: start it twice, suspend it, restore it, go back. No row is lost or doubled."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import midstream as ms
from midstream.checkpoint.command_log import CommandLog
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.checkpoint.reader import Checkpoint
from midstream.cli.main import main
from midstream.commands.add_query import AddQuery
from midstream.commands.change_query import ChangeQuery
from midstream.commands.drop_query import DropQuery
from midstream.model.manifest import Manifest
from midstream.spark.driver import Driver
from midstream.spark.executor import Gathered
from midstream.spark.running_job import Run
from midstream.spark.session import local_session
from midstream.step.plan_step import StepPlan
from tests.spark.drive import SHORT_LIVED
from tests.spark.forked_drivers import ForkedDrivers

SQL = "SELECT A.k, A.ts AS a, B.ts AS b FROM A, B WHERE A.k = B.k WINDOW 0 SECONDS"
ROWS = 5
"""A second of input gives so many results: its rows of both streams meet one another, and no others."""


def feed(root: Path, *seconds: int) -> None:
    for second in seconds:
        for stream in "AB":
            folder = root / "in" / stream
            folder.mkdir(parents=True, exist_ok=True)
            times = pa.array([second * 1_000_000] * ROWS, pa.timestamp("us", "UTC"))
            file = folder / f"{second:03d}.parquet"
            pq.write_table(pa.table({"k": list(range(ROWS)), "ts": times}), file)
            os.utime(file, (1_600_000_000 + second, 1_600_000_000 + second))  # Spark takes them by age.


def the_job(spark: SparkSession, root: Path, one_by_one: bool = False, **sinks: object) -> ms.Job:
    job = ms.Job(spark, root / "checkpoint", lanes=2, durable=False)
    for stream in "AB":
        reader = spark.readStream.schema("k BIGINT, ts TIMESTAMP")
        reader = reader.option("maxFilesPerTrigger", 1) if one_by_one else reader
        job.stream(stream, reader.parquet(str(root / "in" / stream)), "ts")
    for name, sink in (sinks or {"q": ms.sinks.files(root / "out")}).items():
        job.query(name, SQL, sink=sink)
    return job


def finish(run: Run) -> Run:
    assert run.await_termination(120), "the job hangs"
    return run


def do(spark: SparkSession, root: Path, *seconds: int) -> int:
    """Feed, and run a job until it has done what there is; its newest step."""
    feed(root, *seconds)
    return int(finish(the_job(spark, root).start({"availableNow": True})).status()["step"])


def results(folder: Path) -> dict[int, int]:
    """How many results of each second stand in a sink."""
    files = folder.glob("step=*/*.parquet")
    times = [value for file in files for value in pq.read_table(file, partitioning=None)["a"].to_pylist()]
    return dict(sorted(Counter(int(value.timestamp()) for value in times).items()))


def each(seconds: range) -> dict[int, int]:
    return dict.fromkeys(seconds, ROWS)


def test_a_checkpoint_restored_while_its_sink_is_ahead(spark: SparkSession, tmp_path: Path) -> None:
    do(spark, tmp_path, 0)
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(checkpoint, tmp_path / "backup")
    do(spark, tmp_path, 1)
    do(spark, tmp_path, 2)
    shutil.rmtree(checkpoint)
    shutil.copytree(tmp_path / "backup", checkpoint)
    with pytest.raises(ms.CheckpointError, match=r"step 2.*newest step is 0.*midstream rewind .* 0") as caught:
        do(spark, tmp_path, 3)
    assert caught.value.place == f"query q, sink {tmp_path / 'out'}"
    assert results(tmp_path / "out") == each(range(3)), "a job that is refused changes nothing"
    assert main(["rewind", str(checkpoint), "0"]) == 0
    do(spark, tmp_path)
    assert results(tmp_path / "out") == each(range(4))


def test_a_restored_checkpoint_is_not_taken_for_the_same_step_of_another_time_line(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The sink is no step ahead, but its newest one was made of other rows."""
    do(spark, tmp_path, 0)
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "backup")
    do(spark, tmp_path, 1)
    out, aside = tmp_path / "out", tmp_path / "aside"
    shutil.rmtree(tmp_path / "checkpoint")
    shutil.move(tmp_path / "backup", tmp_path / "checkpoint")
    out.rename(aside)
    do(spark, tmp_path, 2)
    shutil.rmtree(out)
    aside.rename(out)
    with pytest.raises(ms.CheckpointError, match="that are not from this checkpoint"):
        do(spark, tmp_path, 3)


def test_results_that_a_user_took_away_are_not_missed(spark: SparkSession, tmp_path: Path) -> None:
    do(spark, tmp_path, 0)
    shutil.rmtree(tmp_path / "out")
    do(spark, tmp_path, 1)
    assert results(tmp_path / "out") == {1: ROWS}


def test_a_sink_that_another_job_has_filled(spark: SparkSession, tmp_path: Path) -> None:
    do(spark, tmp_path, 0)
    shutil.rmtree(tmp_path / "checkpoint")
    with pytest.raises(ms.CheckpointError, match="results of another job"):
        do(spark, tmp_path, 1)
    assert results(tmp_path / "out") == each(range(1))


def test_going_back_over_queries_that_were_added_changed_and_dropped(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    commands, kept = CommandLog(checkpoint / "commands"), tmp_path / "kept"
    do(spark, tmp_path, 0)
    commands.append(AddQuery("dropped", SQL, None, ms.sinks.files(kept).to_json()))
    do(spark, tmp_path, 1)
    commands.append(AddQuery("added", SQL))
    commands.append(ChangeQuery("q", f"{SQL.replace('WINDOW', 'AND A.k < 0 WINDOW')}"))
    commands.append(DropQuery("dropped"))
    do(spark, tmp_path, 2)
    do(spark, tmp_path, 3)
    assert results(tmp_path / "out") == each(range(2))
    assert main(["rewind", str(checkpoint), "0"]) == 0
    assert results(kept) == results(checkpoint / "results" / "added") == {}
    assert results(tmp_path / "out") == each(range(1))
    events = list(Checkpoint.open(checkpoint).events())
    assert {event["step"] for event in events} <= {0}, "events of steps that were given up do not count"
    for path in (checkpoint / "commands").iterdir():
        path.unlink()
    commands.append(AddQuery("added", SQL))
    do(spark, tmp_path, 4)
    assert results(tmp_path / "out") == each(range(5))
    assert results(checkpoint / "results" / "added") == each(range(1, 5))
    assert not kept.exists() or results(kept) == {}


def test_going_back_without_the_command(spark: SparkSession, tmp_path: Path) -> None:
    """`ManifestLog.rewind` alone: the sinks are put right when the job is started, those of later queries when they are
    added again.
    """
    checkpoint = tmp_path / "checkpoint"
    do(spark, tmp_path, 0)
    CommandLog(checkpoint / "commands").append(AddQuery("added", SQL))
    do(spark, tmp_path, 1)
    do(spark, tmp_path, 2)
    ManifestLog(checkpoint / "manifests").rewind(0)
    do(spark, tmp_path, 3)
    assert results(tmp_path / "out") == each(range(4))
    assert results(checkpoint / "results" / "added") == each(range(1, 4))


def test_a_second_driver(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused; told to take over, it does, and the first ends without having changed anything."""
    feed(tmp_path, 0)
    reached, go_on, original = threading.Event(), threading.Event(), Driver._commit

    def commit(self: Driver, plan: StepPlan, gathered: Gathered) -> object:
        if threading.current_thread() is not threading.main_thread() and not reached.is_set():
            reached.set()
            assert go_on.wait(120)
        return original(self, plan, gathered)

    monkeypatch.setattr(Driver, "_commit", commit)
    first = the_job(spark, tmp_path).start({"processingTime": "100 milliseconds"})
    assert reached.wait(120)
    with pytest.raises(ms.HeldCheckpointError, match="stop that run first"):
        the_job(spark, tmp_path).start()
    finish(the_job(spark, tmp_path).start({"availableNow": True}, take_over=True))
    before = sorted((tmp_path / "checkpoint" / "manifests").glob("*.json"))
    go_on.set()
    with pytest.raises(ms.LostCheckpointError, match="has taken the checkpoint over"):
        first.await_termination(120)
    assert first.state == "failed"
    with pytest.raises(ms.CheckpointError, match=r"has failed and takes no command: process .* has taken the"):
        first.rescale(3)
    assert results(tmp_path / "out") == each(range(1))
    assert ManifestLog(tmp_path / "checkpoint" / "manifests").steps() == (-1, 0)
    assert set(before) <= set((tmp_path / "checkpoint" / "manifests").glob("*.json"))
    do(spark, tmp_path, 1)
    assert results(tmp_path / "out") == each(range(2))


def newest(root: Path) -> Manifest | None:
    folder = root / "checkpoint" / "manifests"
    return ManifestLog(folder).latest() if folder.is_dir() else None


@pytest.mark.timeout(300)
def test_a_driver_that_was_suspended_wakes(spark: SparkSession, tmp_path: Path) -> None:
    """It stops before it publishes step 1, in a process of its own; another goes on, and then it wakes."""
    feed(tmp_path, *range(14))
    child = subprocess.Popen([sys.executable, "-m", "tests.spark.test_time_lines", str(tmp_path)], stderr=-1)
    try:
        while Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
            assert child.poll() is None
            time.sleep(0.1)
        make = the_job(spark, tmp_path, one_by_one=True)
        with pytest.raises(ms.HeldCheckpointError, match=f"process {child.pid} on .*, which runs"):
            make.start()
        finish(make.start({"availableNow": True}, take_over=True))
        reached = newest(tmp_path)
        assert reached is not None
        assert reached.step > 8
        os.kill(child.pid, signal.SIGCONT)
        _, said = child.communicate(timeout=120)
    finally:
        child.kill()
    assert child.returncode == 1
    assert b"LostCheckpointError" in said
    assert newest(tmp_path) == reached
    assert results(tmp_path / "out") == each(range(14))


def test_killed_while_what_a_function_was_given_is_removed(
    spark: SparkSession, drivers: ForkedDrivers, tmp_path: Path
) -> None:
    """The function has returned, and half of the step's files are gone: it is not called again, and the job goes on."""
    feed(tmp_path, 0)
    ended = drivers.run("tests.spark.test_time_lines", tmp_path, "amid discard")
    assert ended.returncode == -signal.SIGKILL, ended
    called: list[int] = []
    feed(tmp_path, 1)
    finish(the_job(spark, tmp_path, q=lambda frame, step, query: called.append(step)).start({"availableNow": True}))
    assert called == [1]


def main_of_child(root: Path, how: str = "pause") -> None:
    """A driver that suspends itself before it publishes step 1, or dies while it removes what was staged."""
    spark = local_session("time lines", settings=SHORT_LIVED)
    add, remove = ManifestLog.add, os.unlink

    def paused(self: ManifestLog, manifest: Manifest) -> None:
        if manifest.step == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
        add(self, manifest)

    def half(path: str) -> None:
        remove(path)
        if "/staging/" in path:
            os.kill(os.getpid(), signal.SIGKILL)

    if how == "pause":
        ManifestLog.add = paused  # type: ignore[method-assign]
        job = the_job(spark, root, one_by_one=True)
    else:
        os.unlink = half  # type: ignore[assignment]
        job = the_job(spark, root, q=print)
    job.start({"availableNow": True}).await_termination()


if __name__ == "__main__":
    main_of_child(Path(sys.argv[1]), *sys.argv[2:])
