"""A cluster whose machines share nothing but an object store: they come and go, answers stay exact."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from midstream.checkpoint.reader import Checkpoint
from midstream.cli.main import main
from midstream.model.errors import MidstreamError
from midstream.storage.places import storage_at
from tests.object_server import ObjectServer, Trouble
from tests.oracle.compare import assert_each_step_same
from tests.spark.cluster_job import case
from tests.spark.standalone import Cluster

STEPS = 22
ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def cluster(tmp_path: Path, object_server: ObjectServer) -> Iterator[Cluster]:
    found = Cluster(tmp_path / "cluster", object_server.environment, hidden=[tmp_path / "driver"])
    (tmp_path / "driver").mkdir()
    found.start(workers=2)
    yield found
    found.stop()


class Driver:
    """The job's driver, a process with a folder of its own."""

    def __init__(self, cluster: Cluster, bucket: str, folder: Path) -> None:
        self.checkpoint = f"{bucket}/checkpoint"
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "SPARK_LOCAL_IP": "127.0.0.1"}
        environment |= {"SPARK_LOCAL_DIRS": str(folder / "local"), "MIDSTREAM_CACHE": str(folder / "cache")}
        environment |= {"PYSPARK_PYTHON": sys.executable, "TMPDIR": str(folder)}
        command = [
            sys.executable,
            "-m",
            "tests.spark.cluster_job",
            cluster.url,
            self.checkpoint,
            f"{bucket}/answers",
            str(STEPS),
        ]
        self.log = folder / "log"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)

    def reach(self, step: int) -> None:
        """Wait until a step is done."""
        for _ in range(1200):
            if newest(self.checkpoint) >= step:
                return
            assert self.process.poll() is None, self.log.read_text()[-4000:]
            time.sleep(0.1)
        raise AssertionError(f"step {step} is not reached: {self.log.read_text()[-4000:]}")


def newest(checkpoint: str) -> int:
    """The newest step that is done."""
    try:
        return Checkpoint.open(checkpoint).manifest().step
    except MidstreamError:
        return -1


def found(answers: str) -> list[pa.Table | None]:
    """The sink, step by step."""
    storage = storage_at(answers)
    steps: list[list[pa.Table]] = [[] for _ in range(STEPS)]
    for name, _ in storage.walk():
        folder, _, file = name.rpartition("/")
        if folder.startswith("step=") and file.endswith(".parquet"):
            steps[int(folder[5:])].append(pq.read_table(pa.BufferReader(storage.read(name))))
    return [pa.concat_tables(tables) if tables else None for tables in steps]


@pytest.mark.soak
@pytest.mark.timeout(420)
def test_machines_and_executors_come_and_go_over_a_store_that_fails(
    cluster: Cluster, object_server: ObjectServer, bucket: str, tmp_path: Path
) -> None:
    driver = Driver(cluster, bucket, tmp_path / "driver")
    try:
        driver.reach(2)
        kill(cluster.machines[0].executors())
        driver.reach(4)
        cluster.machines[0].kill()
        cluster.add()
        driver.reach(6)
        assert main(["migrate", driver.checkpoint, "chain", "(A (B C))", "--strategy", "moving_state"]) == 0
        driver.reach(8)
        cluster.machines[1].decommission()
        cluster.add()
        driver.reach(10)
        object_server.make(Trouble(times=25, seconds=0.05))
        driver.reach(12)
        object_server.make(Trouble(status=0, times=200, seconds=0.1))
        driver.reach(14)
        slow = [one for machine in cluster.machines for one in machine.executors()][:1]
        kill(slow, signal.SIGSTOP)
        time.sleep(3)
        kill(slow, signal.SIGCONT)
        driver.reach(16)
        driver.process.kill()  # Its folder is lost with it: what it knew is in the store.
        driver.process.wait()
        (tmp_path / "driver2").mkdir()
        driver = Driver(cluster, bucket, tmp_path / "driver2")
        assert driver.process.wait(240) == 0, driver.log.read_text()[-4000:]
    finally:
        driver.process.kill()
        driver.process.wait()
    assert_each_step_same(found(f"{bucket}/answers"), case(STEPS).expected()["chain"], "chain")
    assert Checkpoint.open(driver.checkpoint).manifest().queries["chain"].plan == "(A (B C))"
    used = [machine.folder.name for machine in cluster.machines if any(machine.cache.rglob("*"))]
    assert len(used) >= 3, "the machines did not share the work"


def kill(processes: list[int], how: signal.Signals = signal.SIGKILL) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, how)
