"""NEXMark beside Spark's own streaming SQL, and joins of an auction day that drifts:
`python -m benchmarks.nexmark [--quick] [--only q3] [--only day] [--rounds 2] [--out DIR]`.

Every query in turns by all who can answer it; every second round runs in the opposite order. Ends with 1 if a run
fails or answers differ. A quick run is of some queries only, on small inputs: it shows that everything runs and agrees;
it is written to build/benchmarks. Queries that are measured by themselves go beside what was measured before.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.compare import disagreements
from benchmarks.measurement import Measurement
from benchmarks.nexmark.contestants import ON_ONE_CORE, ON_SPARK, measured, process
from benchmarks.nexmark.day import contest
from benchmarks.nexmark.page import page
from benchmarks.nexmark.questions import FULL, QUESTIONS, SMALL
from benchmarks.optimizer.record import Report
from benchmarks.optimizer.verdicts import wrong
from benchmarks.peers import PEERS
from benchmarks.report import Result

HERE = Path(__file__).resolve().parent.parent
ROUNDS = 2
DAY = "day"
QUICK = ("q3", "q5", "q9", "q11", "q15")
"""A join, a chain of queries, one that Spark refuses, sessions, and one that Spark answers only if rewritten."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, compare, write; the exit code."""
    options = _parser().parse_args(arguments)
    console = Console(highlight=False)
    out = options.out or (HERE.parent / "build" / "benchmarks" if options.quick else HERE)
    results, failed = out / "results" / "nexmark", list[str]()
    names = options.only or [*(QUICK if options.quick else QUESTIONS), DAY]
    asked = [name for name in QUESTIONS if name in names]
    if asked:
        found, failed = _measure(asked, options.rounds or (1 if options.quick else ROUNDS), options.quick, console)
        for name in asked:
            own = [measurement for measurement in found if measurement.scenario == name]
            if own:
                Result(name, own).save(results)
            failed += disagreements(own)
    if DAY in names:
        day = contest(console, quick=options.quick)
        day.save(results)
        failed += [line for name in day.scenarios for line in wrong(day.of(name))]
    measurements = [Result.load(path) for name in QUESTIONS if (path := results / f"{name}.json").exists()]
    (out / "NEXMARK.md").write_text(page(measurements, Report.load_from(results, "embedded"), options.quick))
    console.print(f"written: {os.path.relpath(out / 'NEXMARK.md')}")
    for line in failed:
        console.print(f"WRONG  {line}", style="bold red", soft_wrap=True)
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="some queries, small inputs, one round")
    parser.add_argument("--only", action="append", choices=[*QUESTIONS, DAY], help="this one (may be repeated)")
    parser.add_argument("--rounds", type=int, help=f"rounds of every query (default {ROUNDS})")
    parser.add_argument("--out", type=Path, help="folder for NEXMARK.md and results/nexmark/ (default: see above)")
    return parser


def _measure(names: Sequence[str], rounds: int, quick: bool, console: Console) -> tuple[list[Measurement], list[str]]:
    """All rounds of all queries, and what failed; the first query runs once before, so that everything is warm."""
    found, failed = list[Measurement](), list[str]()
    folder = Path(tempfile.mkdtemp(prefix="midstream-nexmark-"))
    (SMALL if quick else FULL).write(folder / "input")
    try:
        with process() as one_core, process() as spark:
            for number, name, peer in [*_warm_up(names[0], quick), *_turns(names, rounds)]:
                with console.status(f"{name}, round {number}: {PEERS[peer][0]}"):
                    runs = (one_core if peer in ON_ONE_CORE else spark).submit(measured, peer, name, quick, folder)
                    error = runs.exception()
                if error is not None:
                    failed.append(f"{name}: {peer} failed: {error}")
                elif number:
                    found.append(runs.result())
                    console.print(_line(number, found[-1]), soft_wrap=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return found, failed


def _warm_up(name: str, quick: bool) -> Iterator[tuple[int, str, str]]:
    yield from () if quick else ((0, name, peer) for peer in _peers(name))


def _turns(names: Sequence[str], rounds: int) -> Iterator[tuple[int, str, str]]:
    """Round, query and peer of every run, in order."""
    for number in range(1, rounds + 1):
        for name in names:
            peers = _peers(name)
            yield from ((number, name, peer) for peer in (peers if number % 2 else reversed(peers)))


def _peers(name: str) -> list[str]:
    known: Iterable[str] = (*ON_ONE_CORE, *ON_SPARK)
    return [peer for peer in known if peer != "spark_default" or QUESTIONS[name].spark]


def _line(number: int, found: Measurement) -> str:
    rate = f"steady {found.steady_rate:>11,.0f} rows/s" if len(found.batches) > 1 else ""
    return (
        f"{number} {found.scenario:<4}{PEERS[found.peer][0]:<40}{found.seconds:>8.2f} s "
        f"{found.answer.rows:>9,} results  {rate} {found.notes.get('refused', '')[:60]}"
    )
