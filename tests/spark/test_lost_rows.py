"""Late rows on Spark: `midstream run` says so, as with the embedded engine, and can fail by them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.embedded.test_lost_rows import BAD, GOOD, LATER, write


def test_run_says_how_many_rows_were_late_and_fails_if_it_shall(tmp_path: Path) -> None:
    job = write(tmp_path, GOOD, LATER, BAD)
    command = [sys.executable, "-m", "midstream", "run", str(job), "--once", "--fail-on-late"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "late: orders 1 (14 %)" in done.stderr and "--fail-on-late" in done.stderr
    doing = ["starting Spark", "Spark runs; opening the streams and the checkpoint", "the job runs; waiting for rows"]
    assert [line for line in done.stdout.splitlines() if line in doing] == doing
    assert "step 0 begins" in done.stdout and "so far" in done.stdout
    assert f"late: orders 1 (14 %), in {tmp_path}/ckpt/late/orders" in done.stdout
    assert "dead letters: orders 2 (29 %), the first: " in done.stdout
