"""One short round of kills at random moments, on an object store whose server is killed too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_round_on_a_store_is_exact() -> None:
    command = [sys.executable, "-m", "tests.spark.random_kills", "--minutes", "0", "--seed", "1", "--files", "20"]
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and "seed 1 on a store: exact" in done.stdout, done.stdout + done.stderr
