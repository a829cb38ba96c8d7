"""`midstream run --master`: the machines of a cluster must reach the driver."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.job_folder import fill
from tests.spark.standalone import Cluster
from tests.unit.cli.test_process import SOURCE


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    found = Cluster(tmp_path / "cluster", {})
    found.start(workers=1)
    yield found
    found.stop()


def other_address() -> str:
    """The address by which other machines reach this one; empty if there is no network."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # Nothing is sent.
        except OSError:
            return ""
        return str(probe.getsockname()[0])


@pytest.mark.timeout(300)
def test_executors_of_a_cluster_do_not_look_for_the_driver_on_their_own_machine(
    cluster: Cluster, tmp_path: Path
) -> None:
    if not other_address() or other_address().startswith("127."):
        pytest.skip("this machine has no address but its own")
    fill(tmp_path, files=2)
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_LOCAL_IP"}
    command = [sys.executable, "-m", "midstream", "run", "job.toml", "--once", "--master", cluster.url]
    environment |= {"PYTHONPATH": str(SOURCE)}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr + cluster.said()
    assert sum(pq.read_table(file).num_rows for file in (tmp_path / "out").rglob("*.parquet"))
    launched = "".join(log.read_text() for log in cluster.root.glob("machine*/work/**/stderr"))
    assert "CoarseGrainedScheduler@" in launched
    assert "CoarseGrainedScheduler@127.0.0.1" not in launched
