"""Jobs whose checkpoint is on an object store, with drivers that are processes: killed, suspended, two at once; and
savepoints, forks and going back there.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import midstream as ms
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.cli.main import main
from midstream.pipeline.doctor import examine
from midstream.storage import chunk_cache, places
from midstream.storage.places import storage_at
from tests.spark.processes import children
from tests.spark.processes import state as state_of
from tests.spark.ready_classes import environment
from tests.spark.store_job import the_job
from tests.spark.test_time_lines import each, feed, finish


def results(url: str, folder: str = "out") -> dict[int, int]:
    """How many results of each second stand in a sink."""
    storage, found = storage_at(url), Counter[int]()
    for name, _ in storage.walk(folder):
        if "/step=" in name and "_staging" not in name:
            times = pq.read_table(pa.BufferReader(storage.read(name)))["a"].to_pylist()
            found.update(int(value.timestamp()) for value in times)
    return dict(sorted(found.items()))


def driver(root: Path, url: str, *options: str, kill_at: str = "") -> subprocess.Popen[bytes]:
    """A driver with a disk of its own."""
    own = root / f"machine{len(list(root.glob('machine*')))}"
    own.mkdir()
    command = [sys.executable, "-m", "tests.spark.store_job", str(root), url, *options]
    more = {chunk_cache.FOLDER: str(own / "cache"), places.WORK: str(own / "work"), "MIDSTREAM_KILL_AT": kill_at}
    return subprocess.Popen(command, cwd=own, env=environment() | more, stderr=subprocess.PIPE)


@pytest.mark.timeout(600)
def test_drivers_are_killed_and_one_that_is_suspended_wakes(
    spark: SparkSession, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(chunk_cache.FOLDER, str(tmp_path / "cache"))
    monkeypatch.setenv(places.WORK, str(tmp_path / "work"))
    feed(tmp_path, *range(8))
    log = ManifestLog(f"{bucket}/checkpoint/manifests")
    for point, newest, delivered in (("before_manifest:1", 0, 1), ("before_sink:2", 2, 2)):
        killed = driver(tmp_path, bucket, kill_at=point)
        _, said = killed.communicate(timeout=240)
        assert killed.returncode == -signal.SIGKILL, said.decode()[-2000:]
        assert log.steps()[-1] == newest and results(bucket) == each(range(delivered))
    suspended = driver(tmp_path, bucket, "4")
    try:
        while state_of(suspended.pid) != "T":
            assert suspended.poll() is None, suspended.stderr and suspended.stderr.read().decode()[-2000:]
            time.sleep(0.1)
        make = the_job(spark, tmp_path, bucket)
        with pytest.raises(ms.HeldCheckpointError, match=f"process {suspended.pid} on .*, which runs"):
            make.start()
        finish(make.start({"availableNow": True}, take_over=True))
        reached = log.latest()
        assert reached is not None and reached.step == 7 and results(bucket) == each(range(8))
        os.kill(suspended.pid, signal.SIGCONT)
        _, said = suspended.communicate(timeout=120)
    finally:
        if suspended.poll() is None:
            for process in (*children([suspended.pid], "java"), suspended.pid):
                os.kill(process, signal.SIGKILL)
    assert suspended.returncode == 1 and b"LostCheckpointError" in said, said.decode()[-2000:]
    assert log.latest() == reached and results(bucket) == each(range(8))
    assert [one.check for one in examine(f"{bucket}/checkpoint").findings if one.check != "orphans"] in ([], ["staged"])


@pytest.mark.timeout(300)
def test_savepoints_forks_and_going_back(
    spark: SparkSession, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine that has nothing of the checkpoint on its disk, each time."""
    monkeypatch.setenv(chunk_cache.FOLDER, str(tmp_path / "cache"))
    monkeypatch.setenv(places.WORK, str(tmp_path / "work"))
    checkpoint, forked = f"{bucket}/checkpoint", f"{bucket}/forked"

    def do(*seconds: int) -> int:
        feed(tmp_path, *seconds)
        for folder in ("cache", "work"):
            shutil.rmtree(tmp_path / folder, ignore_errors=True)
        return int(finish(the_job(spark, tmp_path, bucket).start({"availableNow": True})).status()["step"])

    do(0, 1)
    assert main(["savepoint", checkpoint, "early"]) == 0
    assert ms.open(checkpoint).savepoints == {"early": 1}
    assert do(*range(2, 16)) == 15
    assert 1 not in ms.open(checkpoint).steps, "only the savepoint keeps it"
    assert main(["rewind", checkpoint, "12"]) == 0
    assert results(bucket) == each(range(13))
    assert do() == 15 and results(bucket) == each(range(16))
    assert main(["fork", checkpoint, "early", forked]) == 0
    assert main(["rewind", checkpoint, "early"]) == 0
    assert results(bucket) == each(range(2))
    assert do() == 15 and results(bucket) == each(range(16))
    assert examine(checkpoint).is_well
    storage_at(checkpoint).remove_folder("")  # A fork needs nothing of what it was forked from.
    shutil.rmtree(tmp_path / "cache")
    finish(the_job(spark, tmp_path, bucket, "forked", "forked/results/q").start({"availableNow": True}))
    assert results(bucket, "forked/results/q") == each(range(2, 16)), "it does what the savepoint had not"
    assert results(bucket) == each(range(16)) and examine(forked).is_well
