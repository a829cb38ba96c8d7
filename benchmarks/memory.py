"""What memory a large join takes at most: `python -m benchmarks.memory [--quick] [--peer P] [--out DIR]`.

W1 (b) by each peer in a process of its own, and whatever it begins: the JVM of Spark and its Python workers. Ten times
a second Linux is asked what each of them has, memory that several share being counted in parts (`Pss`). Not measured in
turns, for memory does not depend on what else the machine does. Written to MEMORY.md.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from rich.console import Console

from benchmarks.peers import PEERS
from benchmarks.report import machine
from benchmarks.scenarios import SCENARIOS
from benchmarks.table import table

HERE = Path(__file__).resolve().parent
SCENARIO = "w1b"
MEASURED = ("embedded", "embedded_2", "duckdb_1", "midstream_spark", "spark_default", "spark_rocksdb")
ROLES = ("process", "jvm", "workers")
EVERY = 0.1
"""Seconds from one look to the next."""

HEAD = """# Memory

Written by `python -m benchmarks.memory` (part of `make bench`). The most that each had at a time while it did {title}:
its own process, the JVM of Spark (given 8 GB at most, of which it takes what it likes before it collects garbage) and
Spark's Python workers, in megabytes; memory that several share is counted in parts. *In all* is the most of all
together. Results go to files on Spark, and stay in memory embedded and in DuckDB.

Measured: {facts}.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write the page; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small input: shows that it runs")
    parser.add_argument("--out", type=Path, help="folder for MEMORY.md")
    parser.add_argument("--peer", action="append", choices=MEASURED, help="only this one (may be repeated)")
    options = parser.parse_args(arguments)
    out = options.out or (HERE.parent / "build" / "benchmarks" if options.quick or options.peer else HERE)
    scenario, console = SCENARIOS[SCENARIO], Console(highlight=False)
    rows, failed = [], False
    with tempfile.TemporaryDirectory(prefix="midstream-benchmarks-") as folder:
        (scenario.quick() if options.quick else scenario).write(Path(folder) / "input")
        for peer in options.peer or MEASURED:
            peaks = _peaks(peer, Path(folder), quick=options.quick)
            failed = failed or peaks is None
            shown = [f"{(peaks or {}).get(role, 0.0):,.0f}" for role in (*ROLES, "all")]
            rows.append((PEERS[peer][0], *shown))
            console.print(f"{PEERS[peer][0]:<50}", *shown, "" if peaks else "FAILED", soft_wrap=True)
    facts = ", ".join(f"{name} {fact}" for name, fact in machine().items())
    drawn = table(("", "its process", "JVM", "workers", "in all"), "lrrrr", rows)
    out.mkdir(parents=True, exist_ok=True)
    (out / "MEMORY.md").write_text(f"{HEAD.format(title=scenario.title, facts=facts)}\n{drawn}")
    return int(failed)


def _peaks(peer: str, folder: Path, *, quick: bool) -> Mapping[str, float] | None:
    """The most megabytes of each role, and of all at a time; None where the peer failed."""
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory(dir=folder) as work:
        command = [sys.executable, "-m", "benchmarks.peers", peer, SCENARIO, folder / "input", work, f"{work}/out.json"]
        command = [*map(str, command), *(["--quick"] if quick else [])]
        running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while running.poll() is None:
            now = dict.fromkeys(ROLES, 0.0)
            for process, role in _roles(running.pid, "process"):
                now[role] += _megabytes(process)
            now["all"] = sum(now.values())
            found = {role: max(most, found.get(role, 0.0)) for role, most in now.items()}
            time.sleep(EVERY)
    return found if running.returncode == 0 else None


def _roles(process: int, role: str) -> Iterator[tuple[int, str]]:
    """A process and all that it has begun, each with its role, so far as they are there.

    What a JVM has begun is itself once more, in the same memory, until it becomes another program: that is left out.
    """
    yield process, role
    threads: list[Path] = []
    with suppress(OSError):
        threads += Path(f"/proc/{process}/task").iterdir()
    begun = []
    for thread in threads:
        with suppress(OSError):  # It may have ended meanwhile.
            begun += (thread / "children").read_text().split()
    for child in map(int, begun):
        is_java = _program(child) == "java"
        if not is_java:
            yield from _roles(child, "workers")
        elif role != "jvm":
            yield from _roles(child, "jvm")


def _program(process: int) -> str:
    try:
        return Path(f"/proc/{process}/exe").readlink().name
    except OSError:
        return ""


def _megabytes(process: int) -> float:
    """What a process has, what it shares in parts; nothing where it has ended."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")), 0.0)


if __name__ == "__main__":
    sys.exit(main())
