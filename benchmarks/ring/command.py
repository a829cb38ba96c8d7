"""Measure spreads: `python -m benchmarks.ring [--quick] [--host H] [--only SCENARIO] [--out DIR]`.

Ends with 1 if a run fails, answers differ, or a requirement is missed. A quick run shows that everything runs and
agrees: its times mean nothing; it is written to build/benchmarks. A scenario that is measured by itself goes beside
what was measured before.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from rich.console import Console

from benchmarks.report import machine
from benchmarks.ring import embedded, rivals
from benchmarks.ring.contestants import NO_SPREAD, Contestant, on_embedded, on_spark
from benchmarks.ring.load import FULL, QUICK, Load
from benchmarks.ring.page import page
from benchmarks.ring.record import Record, Report
from benchmarks.ring.relocation import RATE, ROUNDS, pauses
from benchmarks.ring.scenarios import SCENARIOS, RingScenario
from benchmarks.ring.verdicts import verdicts, wrong
from midstream.model.errors import MidstreamError

HERE = Path(__file__).resolve().parent.parent
HOSTS = ("embedded", "spark")
QUICK_ON_SPARK = ("two_keys", "band")
BESIDE = {"embedded": ("evenness", "relocation"), "spark": ("hop_cost",)}
"""What is measured beside the scenarios."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write table and picture; the exit code."""
    options = _parser().parse_args(arguments)
    console = Console(highlight=False)
    root = options.out or (HERE.parent / "build" / "benchmarks" if options.quick else HERE)
    load = QUICK if options.quick else FULL
    for host in options.host or HOSTS:
        asked = [name for name in options.only or _asked(host, load) if name in SCENARIOS or name in BESIDE[host]]
        if not asked:
            continue
        before = Report.load_from(root / "results", host) if options.only else None
        report = before if before is not None and before.load == load else Report(host, load)
        _warm_up(host)
        for name in asked:
            if name in SCENARIOS:
                console.rule(f"{host}, {name}: {SCENARIOS[name].scenario.title}")
                report = report.with_records(name, list(_scenario(SCENARIOS[name], host, load, console)), SCENARIOS)
            else:
                console.rule(f"{host}, {name}")
                report = _beside(report, name, load)
            report.save(root / "results")
    reports = [found for host in HOSTS if (found := Report.load_from(root / "results", host)) is not None]
    (root / "RING.md").write_text(page(reports, options.remark))
    picture = (root if options.quick or options.out else HERE.parent / "docs") / "ring.png"
    _draw(reports, picture)
    console.print(f"written: {os.path.relpath(root / 'RING.md')}, {os.path.relpath(picture)}")
    failed = [line for report in reports for line in wrong(report)]
    missed = [one for report in reports for one in verdicts(report) if not one.met]
    failed += [f"{one.what}: {one.found}, required is {one.required}" for one in missed]
    for what in failed:
        console.print(f"WRONG  {what}", style="bold red", soft_wrap=True)
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small inputs, no verdicts on times")
    parser.add_argument(
        "--only", action="append", choices=[*SCENARIOS, *chain(*BESIDE.values())], help="only this (may be repeated)"
    )
    parser.add_argument("--host", action="append", choices=HOSTS, help="this host (may be repeated)")
    parser.add_argument("--out", type=Path, help="folder for RING.md, ring.png and results/")
    parser.add_argument("--remark", default="", help="what a reader must know of this run, such as a busy machine")
    return parser


def _asked(host: str, load: Load) -> Sequence[str]:
    return (*(QUICK_ON_SPARK if host == "spark" and load.quick else SCENARIOS), *BESIDE[host])


def _beside(report: Report, what: str, load: Load) -> Report:
    if what == "relocation":
        found = pauses(1, rate=RATE / 4) if load.quick else pauses(ROUNDS)
        return replace(report, pauses=tuple(found), machine=machine())
    if what == "evenness":
        even, bursts = tuple(embedded.evenness(load)), tuple(embedded.bursts(load))
        return replace(report, evenness=even, bursts=bursts, machine=machine())
    from benchmarks.ring.hop_cost import hop_cost

    return replace(report, hop_costs=(hop_cost(load),), machine=machine())


def _scenario(asked: RingScenario, host: str, load: Load, console: Console) -> Iterator[Record]:
    """A record for each contestant; a spread that is refused is not tried on other numbers of nodes."""
    refused = set[tuple[str, str]]()
    for contestant in (on_embedded if host == "embedded" else on_spark)(asked, load):
        if (contestant.kind, contestant.name) in refused:
            continue
        with console.status(f"{asked.name}: {contestant.title} on {contestant.nodes}"):
            record = _run(asked, contestant, host, load)
        if record.refused:
            refused.add((contestant.kind, contestant.name))
        rate = f"{record.measurement.steady_rate:>10,.0f} rows/s" if len(record.measurement.batches) > 1 else " " * 17
        figures = f"{record.measurement.answer.rows:>10,} results {sum(record.comparisons):>14,} compared"
        said = record.refused or record.stopped or record.failed
        console.print(f"{contestant.title:<44}{contestant.nodes:>3} {rate} {figures} {said}", soft_wrap=True)
        yield record


def _run(asked: RingScenario, contestant: Contestant, host: str, load: Load) -> Record:
    """What a contestant did; one that fails must not keep the others from being measured."""
    with tempfile.TemporaryDirectory(prefix="midstream-ring-") as folder:
        try:
            if contestant.kind == "rival":
                return rivals.run(asked, contestant, load, Path(folder), host)
            if host == "embedded":
                return embedded.run(asked, contestant, load, Path(folder))
            from benchmarks.ring import spark

            return spark.run(asked, contestant, load, Path(folder))
        except MidstreamError as error:
            return Record.nothing(contestant, asked.name, refused=str(error))
        except Exception as error:
            return Record.nothing(contestant, asked.name, failed=f"{type(error).__name__}: {error}")


def _warm_up(host: str) -> None:
    """What is done only once in a process is behind it."""
    _run(next(iter(SCENARIOS.values())), NO_SPREAD, host, QUICK)


def _draw(reports: Sequence[Report], path: Path) -> None:
    from benchmarks.ring.picture import draw

    draw(reports, path)
