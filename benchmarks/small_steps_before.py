"""What small steps cost beside midstream before they were made fast: `python -m benchmarks.small_steps_before`.

The sources of that commit are taken out of the repository's history and run in another process, by the same Python,
numpy and Arrow. Both make the same pushes in turn, a few at a time, so that whatever else the machine does meets both;
measured is processor time, and what the pushes answer is compared by the number of rows. Written to SMALL_STEPS.md.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from rich.console import Console

from benchmarks.history import ROOT, environment, take_out
from benchmarks.report import machine
from benchmarks.small_steps import Kind
from benchmarks.table import table

COMMIT = "da6feff"
"""The last commit before small steps were made fast, of 2026-11-22."""

ROUNDS, TURNS, PUSHES = 3, 30, 10
"""Rounds of new processes; turns of each in a round; pushes measured in a turn."""


@dataclass(frozen=True)
class Compared:
    """Pushes of a kind that are to be `required` times as fast as before, after so many that fill the windows."""

    kind: Kind
    required: float | None
    filling: int = 210
    pushes: int = PUSHES


COMPARED: Mapping[str, Compared] = {
    "30 rows, 3 streams, windows of 200 pushes": Compared(Kind(30), 6.0),
    "30 rows, 3 streams, windows of 2 pushes": Compared(Kind(30, window=2), None, filling=20),
    "one row through 20 joins": Compared(Kind(1, streams=21, window=20, through=True), 10.0, filling=60),
    "one row without a match, in a join of 21 streams": Compared(Kind(1, streams=21), None, filling=60),
    "10,000 rows, 21 streams, windows of 2 pushes": Compared(Kind(10_000, streams=21, window=2), 2.0, 20, pushes=3),
}

MOST_OF_NOTHING = 0.2
"""The milliseconds that a push without a row may take."""

HEAD = """# Small steps beside the commit before

Written by `python -m benchmarks.small_steps_before` (part of `make bench`). Milliseconds of processor time of a push,
the median, embedded and in memory, one lane; midstream of {commit}, before small steps were made fast, beside
today's, in turn. *Ratios* are those of {rounds} rounds of new processes. Both answered as many rows.

Measured: {facts}.
"""


@dataclass(frozen=True)
class Pushed:
    """The milliseconds that pushes took, and how many rows they answered."""

    took: tuple[float, ...]
    rows: int


class Pusher:
    """A process that makes pushes of a kind into an engine of the midstream it is given, when it is asked to."""

    def __init__(self, name: str, process: subprocess.Popen[str]) -> None:
        self.name, self._process = name, process

    def push(self, count: int) -> Pushed:
        """So many more pushes that are measured."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(count, file=self._process.stdin, flush=True)
        answered, *took = self._process.stdout.readline().split()
        return Pushed(tuple(int(one) / 1e6 for one in took), int(answered))


@contextmanager
def pusher(sources: Path, name: str) -> Iterator[Pusher]:
    """A process that makes the pushes of a name with the midstream of this folder."""
    command = [sys.executable, "-m", "benchmarks.small_steps_before", "--push", name]
    with subprocess.Popen(
        command, cwd=sources, env=environment(sources), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Pusher(name, process)


def answer_pushes(compared: Compared) -> None:
    """Make as many pushes as each line of the standard input asks for, and write what they took."""
    engine, tables, step = compared.kind.engine(), compared.kind.pushes(), compared.kind.pushes_a_turn
    for _ in range(compared.filling):
        engine.push(next(tables))
    for line in sys.stdin:
        took, rows = list[int](), 0
        for _ in range(int(line)):
            for _ in range(step - 1):
                engine.push(next(tables))
            given = next(tables)
            begun = time.process_time_ns()
            answered = engine.push(given)
            took.append(time.process_time_ns() - begun)
            rows += answered["join"].num_rows
        print(rows, *took, flush=True)


def measured(name: str, before: Path, turns: int) -> tuple[float, float]:
    """The median milliseconds of a push before and now; raises where both do not answer as much."""
    compared = COMPARED[name]
    with ExitStack() as running:
        pushers = [running.enter_context(pusher(sources, name)) for sources in (before, ROOT)]
        took: tuple[list[float], list[float]] = [], []
        for turn in range(turns):
            order = (0, 1) if turn % 2 else (1, 0)
            found = {at: pushers[at].push(compared.pushes) for at in order}
            if found[0].rows != found[1].rows:
                raise AssertionError(f"{name}: {found[0].rows} rows before, {found[1].rows} now")
            for at, pushed in found.items():
                took[at].extend(pushed.took)
    return median(took[0]), median(took[1])


def of_nothing(pushes: int) -> float:
    """The median milliseconds of a push without a row."""
    kind, took = Kind(30), list[float]()
    engine, tables = kind.engine(), kind.pushes()
    for _ in range(20):
        engine.push(next(tables))
    for _ in range(pushes):
        begun = time.process_time_ns()
        engine.push({})
        took.append((time.process_time_ns() - begun) / 1e6)
    return median(took[2:])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, judge and write the page; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="show that it runs; its times mean nothing")
    parser.add_argument("--out", type=Path, help="folder for SMALL_STEPS.md")
    parser.add_argument("--push", choices=COMPARED, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.push:
        answer_pushes(COMPARED[options.push])
        return 0
    rounds, turns = (1, 2) if options.quick else (ROUNDS, TURNS)
    out = options.out or (ROOT / "build" / "benchmarks" if options.quick else Path(__file__).resolve().parent)
    console, rows, missed = Console(highlight=False), list[tuple[str, ...]](), False
    with tempfile.TemporaryDirectory(prefix="midstream-benchmarks-") as folder:
        before = Path(folder) / "before"
        take_out(COMMIT, before)
        for name, compared in COMPARED.items():
            found = [measured(name, before, turns) for _ in range(rounds)]
            ratio, required = median([former / now for former, now in found]), compared.required
            met = required is None or ratio >= required
            missed = missed or not met
            rows.append(
                (
                    name,
                    *(f"{median(times):.2f}" for times in zip(*found, strict=True)),
                    " · ".join(f"{former / now:.1f}" for former, now in found),
                    f"**{ratio:.1f}**",
                    "" if required is None else f"{required:.0f}, {'met' if met else 'MISSED'}",
                )
            )
            console.print(*rows[-1], soft_wrap=True)
    nothing = of_nothing(10 if options.quick else 300)
    missed = missed or nothing > MOST_OF_NOTHING
    said = f"A push without a row takes {nothing:.3f} ms (at most {MOST_OF_NOTHING})."
    console.print(said)
    drawn = table(("a push of", "before", "now", "ratios", "times", "required"), "lrrrrr", rows)
    facts = ", ".join(f"{key} {fact}" for key, fact in machine().items())
    out.mkdir(parents=True, exist_ok=True)
    head = HEAD.format(commit=COMMIT, rounds=rounds, facts=facts)
    (out / "SMALL_STEPS.md").write_text(f"{head}\n{drawn}\n{said}\n")
    return int(missed and not options.quick)


if __name__ == "__main__":
    raise SystemExit(main())
