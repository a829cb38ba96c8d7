"""`make mutants`: apply each seeded fault to a copy of the tree and see that a test of `make test` fails.

    python -m tests.mutants.run [NAME ...] [--processes 2] [--fifth N] [--list]

The working tree is never touched: each process works in a copy of its own. Exit code 1 if a fault survives.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from queue import SimpleQueue

from tests.drawing import chosen_fifth
from tests.mutants.faults import FAULTS, Fault

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "midstream"

ROOMS: dict[str, tuple[str, ...]] = {
    "migration": ("src/midstream/migration", "tests/unit/migration", "tests/property", "tests/conformance"),
    "sharing": ("src/midstream/sharing", "tests/unit/sharing", "tests/unit/embedded", "tests/sharing"),
    "ring": ("src/midstream/ring", "tests/unit/ring", "tests/unit/embedded", "tests/property"),
    "operators": ("src/midstream/operators", "tests/unit/operators", "tests/unit/embedded", "tests/property"),
    "plan": ("src/midstream/plan", "tests/unit/plan", "tests/golden", "tests/property"),
    "state": ("src/midstream/state", "tests/unit/state", "tests/unit/embedded", "tests/sharing", "tests/property"),
    "runtime": ("src/midstream/runtime", "tests/unit/runtime", "tests/unit/embedded", "tests/property"),
    **{
        room: (f"src/midstream/{room}", "tests/unit/step", "tests/unit/embedded", "tests/property")
        for room in ("admission", "units", "proposals", "commands", "review", "step")
    },
    **{
        room: (f"src/midstream/{room}", "tests/unit/sql", "tests/golden", "tests/property")
        for room in ("expr", "logical", "sql")
    },
    "checkpoint": ("src/midstream/checkpoint", "tests/unit/checkpoint", "tests/embedded", "tests/property"),
    "embedded": ("src/midstream/embedded", "tests/unit/embedded", "tests/embedded", "tests/property"),
    "pipeline": ("src/midstream/pipeline", "tests/unit/pipeline", "tests/unit/embedded", "tests/embedded"),
    "storage": ("src/midstream/storage", "tests/unit/state", "tests/unit/embedded", "tests/property"),
    "sinks": ("src/midstream/sinks", "tests/sinks", "tests/embedded"),
    "spark": ("tests/spark",),
    "optimizer": ("src/midstream/optimizer", "tests/unit/optimizer", "tests/optimizer"),
}
"""What `make test` runs of each room, if none of a fault's own tests fails."""

LONGEST = 1800
"""Seconds after which a run counts as killed: a fault may make the code wait for ever."""

_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+\.py\b.*?)(?: - |$)", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """What became of a fault: the test that killed it, or None if it survived, and how many seconds that took."""

    fault: Fault
    killer: str | None
    seconds: float
    output: str


def copied(to: Path) -> Path:
    """Copy the tracked and new files of the tree, the virtual environment by a link."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    (to / ".venv").symlink_to(ROOT / ".venv")
    return to


@contextmanager
def applied(fault: Fault, tree: Path) -> Iterator[None]:
    """Have a fault in a copy of the tree within this block."""
    path = tree / "src" / "midstream" / fault.file
    text = path.read_text(encoding="utf-8")
    if text.count(fault.old) != 1:
        raise SystemExit(f"{fault.name}: {fault.file} has its text {text.count(fault.old)} times")
    _write(path, text.replace(fault.old, fault.new))
    try:
        yield
    finally:
        _write(path, text)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    # Python takes compiled code for that of a file of the same size and second.
    Path(cache_from_source(str(path))).unlink(missing_ok=True)


def outcome(fault: Fault, tree: Path, environment: dict[str, str]) -> Outcome:
    """Run a fault's own tests, then those of its room, until one fails."""
    begun, output = time.monotonic(), ""
    with applied(fault, tree):
        for tests in (fault.tests, ROOMS[fault.room]):
            code, output = _pytest(tests, tree, environment)
            if code == 1:
                found = _FAILED.search(output)
                return Outcome(fault, found[1] if found else "?", time.monotonic() - begun, output)
            if code is None:
                return Outcome(fault, f"no end after {LONGEST} s", time.monotonic() - begun, output)
            if code != 0:  # No test ran, or pytest itself failed: that kills nothing.
                raise SystemExit(f"{fault.name}: pytest ended with {code}\n{output[-5000:]}")
    return Outcome(fault, None, time.monotonic() - begun, output)


def _pytest(tests: Sequence[str], tree: Path, environment: dict[str, str]) -> tuple[int | None, str]:
    """Run tests until the first fails; the exit code, None if they did not end, and what was printed."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=short", *tests]
    with subprocess.Popen(
        command, cwd=tree, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    ) as running:  # fmt: skip
        try:
            output, _ = running.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            output, _ = running.communicate()
            return None, output
    return running.returncode, output


def run(faults: Sequence[Fault], processes: int, fifth: str) -> list[Outcome]:
    """Try the faults, so many at a time, and print each as it is done."""
    with tempfile.TemporaryDirectory(prefix="midstream-mutants-") as folder:
        trees = SimpleQueue[Path]()
        for number in range(processes):
            trees.put(copied(Path(folder) / str(number)))

        def one(fault: Fault) -> Outcome:
            tree = trees.get()
            try:
                paths = os.pathsep.join(str(tree / part) for part in ("src", "."))
                environment = {**os.environ, "PYTHONPATH": paths, "MIDSTREAM_PROFILE": "test", "MIDSTREAM_FIFTH": fifth}
                found = outcome(fault, tree, environment)
            finally:
                trees.put(tree)
            print(row(found), flush=True)
            return found

        with ThreadPoolExecutor(processes) as pool:
            return list(pool.map(one, faults))


def row(found: Outcome) -> str:
    """The line of a fault in the table."""
    how = "SURVIVED" if found.killer is None else "killed"
    return f"{how:8}  {found.seconds:6.1f} s  {found.fault.name:48}  {found.killer or found.fault.breaks}"


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.run", description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="faults to try, or beginnings of their names; all without any"
    )
    parser.add_argument("--processes", type=int, default=2, help="how many are tried at a time (2)")
    parser.add_argument(
        "--fifth", help="the fifth of the random suites that is drawn (0 to 4), instead of the commit's"
    )
    parser.add_argument("--list", action="store_true", help="only list the faults")
    given = parser.parse_args()
    chosen = [f for f in FAULTS if not given.names or any(f.name.startswith(name) for name in given.names)]
    if not chosen:
        parser.error(f"no fault is named {' or '.join(given.names)}")
    if given.list:
        print("\n".join(f"{fault.name:48}  {fault.breaks}" for fault in chosen))
        return 0
    begun = time.monotonic()
    found = run(chosen, given.processes, given.fifth or str(chosen_fifth()))
    survived = [one.fault.name for one in found if one.killer is None]
    print(f"{len(found) - len(survived)} of {len(found)} killed in {time.monotonic() - begun:.0f} s")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
