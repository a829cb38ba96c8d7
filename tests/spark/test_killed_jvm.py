"""The JVM of `midstream run` is killed: there is one message, which says what happened and what to do."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

from tests.embedded.test_lost_rows import GOOD, write

PATIENCE = 240.0


def test_there_is_one_message(tmp_path: Path) -> None:
    job = write(tmp_path, GOOD)
    command = [sys.executable, "-m", "midstream", "run", str(job)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as running:
        deadline = time.monotonic() + PATIENCE
        while not list((tmp_path / "out").glob("step=*/*")):
            assert running.poll() is None and time.monotonic() < deadline
            time.sleep(0.2)
        (jvm,) = (one for one in psutil.Process(running.pid).children(recursive=True) if one.name() == "java")
        jvm.send_signal(signal.SIGKILL)
        _, said = running.communicate(timeout=PATIENCE)
    assert running.returncode == 1
    (line,) = said.splitlines()
    assert line.startswith("midstream: Spark has failed: its Java process has ended, or was killed"), line
    assert "ran out of memory" in line and "start the job again" in line
    assert "Traceback" in (tmp_path / "ckpt" / "spark.log").read_text()
