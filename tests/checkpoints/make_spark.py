"""Writes the checkpoint of a job that was killed amid its migrations: `python -m tests.checkpoints.make_spark FORMAT`.

Run it in a working copy of the commit whose checkpoint is to be kept, so that the job runs by the code of that commit.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa

from midstream.checkpoint.command_log import CommandLog
from tests.checkpoints.course import fingerprint
from tests.checkpoints.kept import ROOT, archive, pack, relocate
from tests.checkpoints.spark_job import CASE, COURSE, SAVED
from tests.spark.drive import Place
from tests.spark.shared_case import commands, feed

KILLED_AT = f"after_manifest:{SAVED - 1}"
"""The step is committed, its results are not in the sinks yet, and Spark will bring its batch again."""


def run(folder: Path, point: str = "") -> int:
    """Run the job in a process of its own."""
    environment = {**os.environ, "MIDSTREAM_KILL_AT": point} if point else dict(os.environ)
    return subprocess.run([sys.executable, "-m", "tests.checkpoints.spark_job", folder], env=environment).returncode


def make(target: Path) -> None:
    """Kill the job, keep what is there, and let it go on to its end for the record."""
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        folder, kept = Path(first), Path(second)
        feed(folder, CASE)
        assert run(folder, KILLED_AT) == -signal.SIGKILL
        for command in commands(folder, SAVED, CASE):
            CommandLog(folder / "checkpoint" / "commands").append(command)
        entries = Place(folder).manifest().queries
        under_way = sorted(query for query, entry in entries.items() if entry.migrations)
        assert COURSE.under_way <= set(under_way), under_way
        for part in ("checkpoint", "answers"):
            shutil.copytree(folder / part, kept / part)
        relocate(kept, str(folder), ROOT)
        assert run(folder) == 0
        answers: dict[str, dict[int, pa.Table]] = {}
        for query in sorted(path.name for path in (folder / "answers").iterdir()):
            found = enumerate(Place(folder).by_step(query, len(CASE.steps)))
            answers[query] = {step: table for step, table in found if table is not None}
        pack(target, kept, answers, {"input": fingerprint(CASE.steps), "under way": under_way})
        print(target.stat().st_size, {q: sum(t.num_rows for t in found.values()) for q, found in answers.items()})


if __name__ == "__main__":
    make(archive("spark", int(sys.argv[1])))
