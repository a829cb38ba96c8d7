"""A job on Spark that is ended by a signal to all of its processes, and one whose JVM dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import midstream as ms
from midstream.checkpoint.reader import Checkpoint
from tests.job_folder import fill
from tests.spark.processes import children
from tests.unit.cli.test_process import SOURCE, midstream


@pytest.fixture
def process(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """`midstream run` in a process group of its own, which has done a step."""
    fill(tmp_path, files=2)
    started = subprocess.Popen(
        [sys.executable, "-m", "midstream", "run", "job.toml", "--interval", "200 milliseconds", "--cores", "2"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 200
        while steps(tmp_path) < 1 and time.monotonic() < deadline:
            assert started.poll() is None
            time.sleep(0.1)
        yield started
    finally:
        started.kill()


def steps(folder: Path) -> int:
    try:
        return Checkpoint.open(folder / "ckpt").manifest().step
    except ms.CheckpointError:
        return 0


def state(folder: Path) -> str:
    """How the job stands for those who look at its checkpoint."""
    return str(json.loads(midstream("status", str(folder / "ckpt"), "--json").stdout)["state"])


def test_a_signal_to_all_of_its_processes_ends_it_in_order(process: subprocess.Popen[str], tmp_path: Path) -> None:
    os.killpg(process.pid, signal.SIGTERM)
    out, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (0, "")
    assert "rows in" in out
    assert state(tmp_path) == "stopped"


def test_a_job_whose_jvm_has_died_ends_and_says_so(process: subprocess.Popen[str], tmp_path: Path) -> None:
    (jvm,) = children([process.pid], "java")
    os.kill(jvm, signal.SIGKILL)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Spark has failed: its Java process has ended, or was killed" in error, error
    assert state(tmp_path) == "failed"
