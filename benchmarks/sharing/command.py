"""Measure sharing: `python -m benchmarks.sharing [--quick] [--only PART] [--out DIR]`.

Ends with 1 if contestants' answers differ, or a requirement is missed. A quick run shows that everything runs and
agrees: its times mean nothing. A quick run is written to build/benchmarks; a part goes beside what was measured before.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.report import machine
from benchmarks.sharing.embedded import race
from benchmarks.sharing.newcomer import newcomers
from benchmarks.sharing.pace import ISOLATED, MODES, PARTITION
from benchmarks.sharing.page import page
from benchmarks.sharing.plan import CHAINS, ISOLATED_STEPS, MANY_FROM, Plan, full, quick
from benchmarks.sharing.record import Newcomer, OnSpark, Record, Report, Scaling
from benchmarks.sharing.scaling import scaling
from benchmarks.sharing.verdicts import verdicts, wrong
from benchmarks.sharing.workload import Workload

HERE = Path(__file__).resolve().parent.parent
PARTS = ("embedded", "scaling", "newcomers", "spark")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write table and picture; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few queries, few steps, no verdicts")
    parser.add_argument("--only", action="append", choices=PARTS, help="this part (may be repeated)")
    parser.add_argument("--out", type=Path, help="folder for SHARING.md, sharing.png and results/")
    options = parser.parse_args(arguments)
    console = Console(highlight=False)
    root = options.out or (HERE.parent / "build" / "benchmarks" if options.quick else HERE)
    picture = (root if options.quick or options.out else HERE.parent / "docs") / "sharing.png"
    plan = quick() if options.quick else full()
    kept = Report.load(root / "results" / "sharing.json") if options.only else None
    report = replace(kept or Report(), quick=options.quick, machine=machine())
    parts = options.only or PARTS
    if "embedded" in parts:
        report = replace(report, records=tuple(_embedded(plan, console)))
    if "scaling" in parts:
        report = replace(report, scalings=tuple(_scaling(plan, console)))
    if "newcomers" in parts:
        there = [n for n in report.newcomers if n.host != "embedded"]
        report = replace(report, newcomers=(*_newcomers(plan, console), *there))
    report.save(root / "results" / "sharing.json")
    if "spark" in parts:
        runs, added = _spark(plan, console)
        there = [n for n in report.newcomers if n.host != "spark"]
        report = replace(report, spark=tuple(runs), newcomers=(*there, *added))
    report.save(root / "results" / "sharing.json")
    (root / "SHARING.md").write_text(page(report))
    _draw(report, picture)
    console.print(f"written: {os.path.relpath(root / 'SHARING.md')}, {os.path.relpath(picture)}")
    failed = wrong(report)
    if not options.quick:
        failed += [f"{v.what}: {v.found}, required is {v.required}" for v in verdicts(report) if not v.met]
    for what in failed:
        console.print(f"WRONG  {what}", style="bold red", soft_wrap=True)
    return 1 if failed else 0


def _embedded(plan: Plan, console: Console) -> list[Record]:
    race(Workload(2), MODES[:1], quick().pace, {})  # What is done only once in a process is behind it.
    found: list[Record] = []
    for workload in plan.workloads:
        console.rule(f"embedded, {workload.name}")
        modes, slow = [m for m in MODES if workload.filters != "none" or m != PARTITION], dict[str, int]()
        if workload.queries >= MANY_FROM:
            slow = {ISOLATED: ISOLATED_STEPS}
            modes = modes if workload == Workload(workload.queries) else modes[1:]
        for record in race(workload, modes, plan.pace_of(workload), slow):
            time = f"{1000 * record.typical:9.1f} ms" if record.typical is not None else " " * 12
            figures = f"{record.results:>10,} results {record.state_rows:>10,} state rows"
            said = record.wrong or record.remark or ""
            console.print(f"{record.mode:<10}{time} {figures} {said} {record.refused}", soft_wrap=True)
            found.append(record)
    return found


def _scaling(plan: Plan, console: Console) -> list[Scaling]:
    console.rule("1,000 queries that want as much as 10")
    found = []
    for run in scaling(CHAINS, plan.scaling_results, plan.scaling):
        console.print(f"{run.mode:<10}{run.results[0]:>12,} results a step: ratio {run.ratio:.2f}")
        found.append(run)
    return found


def _newcomers(plan: Plan, console: Console) -> list[Newcomer]:
    console.rule(f"added to {plan.crowd.queries:,}")
    return [_told(run, console) for mode in CHAINS for run in newcomers(mode, plan.crowd, plan.newcomer)]


def _told(run: Newcomer, console: Console) -> Newcomer:
    line = f"{run.host:<10}{run.mode:<10}{run.what:<26}{run.cost:7.3f} s beyond a step; with it {run.step:.3f} s"
    console.print(line, soft_wrap=True)
    return run


def _spark(plan: Plan, console: Console) -> tuple[list[OnSpark], list[Newcomer]]:
    from benchmarks.sharing.spark import compete, session
    from benchmarks.sharing.spark_newcomer import newcomers_on_spark

    console.rule("on Spark")
    runs: list[Any] = []
    with session() as spark:
        list(compete(spark, (1,), quick().spark, 60))
        for run in compete(spark, plan.spark_counts, plan.spark, plan.spark_budget):
            time = f"{run.typical:7.2f} s" if run.typical is not None else " " * 9
            console.print(f"{run.queries:>5,} {run.contender:<24}{time} a step {run.stopped} {run.wrong}")
            runs.append(run)
        patience = 2 * plan.spark_budget
        added = newcomers_on_spark(spark, plan.spark_crowd, plan.spark_newcomer, patience)
        return runs, [_told(run, console) for run in added]


def _draw(report: Report, path: Path) -> None:
    from benchmarks.sharing.picture import draw

    draw(report, path)
