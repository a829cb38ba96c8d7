"""Measure all peers side by side, then changes of plan: `python -m benchmarks.run [--quick] [--only w1a]`.

Each peer runs in a process of its own, so that the memory and compiled code of one do not touch another; every second
round runs in the opposite order. Ends with 1 if answers differ, a peer fails, or a required ratio is missed. A quick
run shows that everything runs and agrees: small inputs, one round, no verdicts. A quick run, or one of some peers
only, is written to build/benchmarks. `--only plan_change` does nothing but `python -m benchmarks.plan_change`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.compare import compare, disagreements
from benchmarks.measurement import Measurement
from benchmarks.peers import BY_NAME, PEERS
from benchmarks.report import Result, load_results, page
from benchmarks.scenarios import SCENARIOS, Scenario

HERE = Path(__file__).resolve().parent
ROUNDS = 2
PLAN_CHANGE = "plan_change"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, compare, write; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small inputs of one size, one round, no verdicts")
    parser.add_argument(
        "--only", action="append", choices=[*SCENARIOS, PLAN_CHANGE], help="this scenario (may be repeated)"
    )
    parser.add_argument("--peer", action="append", choices=PEERS, help="this peer (may be repeated)")
    parser.add_argument("--rounds", type=int, help=f"rounds of every peer (default {ROUNDS})")
    parser.add_argument("--out", type=Path, help="folder for RESULTS.md and results/ (default: see above)")
    options = parser.parse_args(arguments)
    if options.only == [PLAN_CHANGE]:
        return plan_change(options.quick, options.out)
    rounds = options.rounds or (1 if options.quick else ROUNDS)
    out = options.out or (HERE.parent / "build" / "benchmarks" if options.quick or options.peer else HERE)
    console = Console(highlight=False)
    wrong: list[str] = []
    names = options.only or [name for name in (*SCENARIOS, PLAN_CHANGE) if not (options.quick and name.endswith("b"))]
    for name in [name for name in names if name != PLAN_CHANGE]:
        scenario = SCENARIOS[name].quick() if options.quick else SCENARIOS[name]
        console.rule(f"{name}: {SCENARIOS[name].title}{' (quick: smaller)' if options.quick else ''}")
        with tempfile.TemporaryDirectory(prefix="midstream-benchmarks-") as folder:
            peers = [
                peer
                for peer in options.peer or PEERS
                if peer not in scenario.left_out and (options.peer or peer not in BY_NAME)
            ]
            measurements, failed = measure(scenario, peers, rounds, Path(folder), console)
        wrong += failed + disagreements(measurements)
        if measurements:
            Result(name, measurements).save(out / "results")
        if not options.quick:
            wrong += [
                f"{name}: {line.ours} / {line.theirs} is {line.ratio:.2f}, required is {line.required}"
                for line in compare(name, measurements)
                if not line.met
            ]
    (out / "RESULTS.md").write_text(page(load_results(out / "results"), options.quick))
    console.rule()
    console.print(f"written: {os.path.relpath(out / 'RESULTS.md')}")
    if PLAN_CHANGE in names and not options.peer and plan_change(options.quick, options.out):
        wrong.append("plan_change: see above")
    for line in wrong:
        console.print(f"WRONG  {line}", style="bold red")
    return 1 if wrong else 0


def plan_change(quick: bool, out: Path | None) -> int:
    """Measure changes of plan in a process of its own; its exit code."""
    options = [*(["--quick"] if quick else []), *(["--out", str(out.resolve())] if out else [])]
    return subprocess.run([sys.executable, "-m", "benchmarks.plan_change", *options], cwd=HERE.parent).returncode


def measure(
    scenario: Scenario, peers: Sequence[str], rounds: int, folder: Path, console: Console
) -> tuple[list[Measurement], list[str]]:
    """All rounds of all peers, and what failed."""
    scenario.write(folder / "input")
    measurements: list[Measurement] = []
    failed: list[str] = []
    for number in range(rounds):
        for peer in peers if number % 2 == 0 else reversed(peers):
            with console.status(f"{scenario.name}, round {number + 1} of {rounds}: {PEERS[peer][0]}"):
                found = run_peer(peer, scenario, folder)
            if isinstance(found, str):
                failed.append(f"{scenario.name}: {peer} failed: {found}")
                console.print(failed[-1], style="red")
                continue
            measurements.append(found)
            rate = f"steady {found.steady_rate:>9,.0f} rows/s" if len(found.batches) > 1 else ""
            answer = f"{found.answer.rows:>10,} results"
            console.print(f"{number + 1} {PEERS[peer][0]:<50}{found.seconds:>8.2f} s {answer}  {rate}", soft_wrap=True)
            for name, value in found.notes.items():
                console.print(f"  {name}: {value}", soft_wrap=True)
    return measurements, failed


def run_peer(peer: str, scenario: Scenario, folder: Path) -> Measurement | str:
    """One peer in a process of its own: its measurement, or the end of what it said when it failed."""
    with tempfile.TemporaryDirectory(dir=folder) as work:
        output = Path(work) / "measurement.json"
        command = [sys.executable, "-m", "benchmarks.peers", peer, scenario.name, folder / "input", work, output]
        command += ["--quick"] * (scenario.rows == SCENARIOS[scenario.name].quick().rows)
        command += ["--batches", scenario.batches]
        done = subprocess.run([*map(str, command)], cwd=HERE.parent, capture_output=True, text=True)
        if done.returncode:
            return "\n".join(done.stderr.strip().splitlines()[-12:])
        return Measurement.from_json(json.loads(output.read_text()))


if __name__ == "__main__":
    sys.exit(main())
