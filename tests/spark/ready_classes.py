"""Spark's classes as the JVM has them in memory, in a file: what starts it for seconds need not read them again."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.spark.crash_job import feed

ROOT = Path(__file__).resolve().parent.parent.parent


def environment(jvm_option: str = "") -> dict[str, str]:
    """What a job script is run with; by default such that its JVM starts with less than two thirds of the work."""
    options = f"{os.environ.get('SPARK_SUBMIT_OPTS', '')} {jvm_option or f'-XX:SharedArchiveFile={_archive()}'}"
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return {**os.environ, "PYTHONPATH": paths, "SPARK_SUBMIT_OPTS": options.strip()}


@cache
def _archive() -> Path:
    """Made once, by a job that runs to its end; without the file a JVM starts as ever."""
    folder = Path(_folder().name)
    feed(folder)
    made = folder / "classes.jsa"
    subprocess.run(
        [sys.executable, "-m", "tests.spark.crash_job", str(folder)],
        cwd=folder,
        env=environment(f"-XX:ArchiveClassesAtExit={made}"),
        capture_output=True,  # Its end is the end of the JVM, which writes last of all.
        timeout=900,
        check=True,
    )
    return made


@cache
def _folder() -> TemporaryDirectory[str]:
    """Goes with this process."""
    return TemporaryDirectory(prefix="midstream-classes-")
