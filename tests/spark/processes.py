"""The Python workers of this process' Spark session, found in /proc."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path


def workers() -> list[int]:
    """Every Python worker of the session."""
    jvm = children([os.getpid()], "java")
    return children(children(jvm, "pyspark.daemon"), "pyspark.daemon")


def busy_workers() -> list[int]:
    """Those that are using the processor."""
    return [worker for worker in workers() if state(worker) == "R"]


def kill_workers() -> None:
    """Kill all of them; Spark makes new ones."""
    for worker in workers():
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)


def children(parents: list[int], word: str) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                if parent in parents and word in (folder / "cmdline").read_text():
                    found.append(int(folder.name))
            except OSError:
                continue
    return found


def state(process: int) -> str:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""
