"""Measure changes of plan: `python -m benchmarks.plan_change [--quick] [--only SCENARIO] [--strategy S] [--host H]`.

Every scenario with every strategy on the embedded engine, and some scenarios on Spark. Ends with 1 if a run fails,
loses or doubles a result, or the best strategy of a scenario is silent for too long. A quick run shows that everything
runs and agrees: its times mean nothing. A quick run, or one of a part only, is written to build/benchmarks.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from benchmarks.plan_change import embedded
from benchmarks.plan_change.contestants import NEVER, RESTART, Contestant, Form, contestants, every_strategy
from benchmarks.plan_change.load import LOADS, QUICK, Load
from benchmarks.plan_change.measures import change_of, measure
from benchmarks.plan_change.page import page
from benchmarks.plan_change.record import Record, Report, outputs_of, record_of, verdicts
from benchmarks.plan_change.rows import generate
from benchmarks.plan_change.scenario import Scenario
from benchmarks.plan_change.scenarios import SCENARIOS
from benchmarks.plan_change.stateless import carried
from benchmarks.plan_change.task import Task
from benchmarks.plan_change.trace import Trace

HERE = Path(__file__).resolve().parent.parent
ON_SPARK = ("selectivity_flip", "flapping")
QUICK_ON_SPARK = ("selectivity_flip",), (NEVER, RESTART, "moving_state", "hybmig")

Host = Callable[[Task], Trace]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write table and picture; the exit code."""
    options = _parser().parse_args(arguments)
    console = Console(highlight=False)
    partial = bool(options.quick or options.only or options.strategy)
    root = options.out or (HERE.parent / "build" / "benchmarks" if partial else HERE)
    wrong: list[str] = []
    hosts = options.host or [*LOADS]
    for host in hosts:
        with _hosts(host, options.wait) as run:
            report = _measure(host, run, options, console)
        report.save(root / "results")
        wrong += [f"{host}, {r.scenario}, {r.contestant}: {r.wrong}" for r in report.records if r.wrong]
        for line in verdicts(report):
            assert line.best.measures is not None
            times = f"{line.best.measures.gap_ratio:.2f} times as long as without a migration"
            said = f"{host}, {line.scenario}: the best, {line.best.contestant}, is silent {times}"
            console.print(said)
            wrong += [] if line.met or options.quick else [said]
    shown = hosts if partial else LOADS
    reports = [found for host in shown if (found := Report.load_from(root / "results", host)) is not None]
    (root / "PLAN_CHANGE.md").write_text(page(reports))
    picture = _picture(reports, root if partial or options.out else HERE.parent / "docs")
    console.print(f"written: {os.path.relpath(root / 'PLAN_CHANGE.md')}, {os.path.relpath(picture)}")
    for what in wrong:
        console.print(f"WRONG  {what}", style="bold red")
    return 1 if wrong else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small inputs, no verdicts")
    parser.add_argument("--only", action="append", choices=SCENARIOS, help="this scenario (may be repeated)")
    parser.add_argument(
        "--strategy", action="append", choices=[*every_strategy(), RESTART], help="this one (repeatable)"
    )
    parser.add_argument("--host", action="append", choices=LOADS, help="this host (may be repeated)")
    parser.add_argument("--wait", action="store_true", help="embedded: sleep between ticks instead of skipping them")
    parser.add_argument("--out", type=Path, help="folder for PLAN_CHANGE.md, plan_change.png and results/")
    return parser


def _measure(host: str, run: Host, options: argparse.Namespace, console: Console) -> Report:
    """All runs of a host."""
    load = (QUICK if options.quick else LOADS)[host]
    names = options.only or (SCENARIOS if host == "embedded" else ON_SPARK)
    chosen: Sequence[str] | None = [NEVER, *options.strategy] if options.strategy else None
    if options.quick and host == "spark":
        names, chosen = options.only or QUICK_ON_SPARK[0], chosen or QUICK_ON_SPARK[1]
    competing = [c for c in contestants(every_strategy(), load) if chosen is None or c.strategy in chosen]
    starts = {c.start for c in competing if c.strategy != NEVER}
    competing = [c for c in competing if c.strategy != NEVER or c.start in starts or c == Contestant(NEVER)]
    records: list[Record] = []
    for name in names:
        console.rule(f"{host}, {name}: {SCENARIOS[name].title}{' (quick: smaller)' if options.quick else ''}")
        records += _scenario(SCENARIOS[name], competing, load, run, console)
    remark = carried(generate(SCENARIOS[next(iter(SCENARIOS))], QUICK[host]), "pause_drain_resume")
    return Report(host, load, tuple(records), remark, options.quick)


def _scenario(
    scenario: Scenario, competing: Sequence[Contestant], load: Load, run: Host, console: Console
) -> Iterator[Record]:
    """A row for each contestant; references come first and are kept."""
    rows, references = generate(scenario, load), dict[Form, Trace]()
    since, until = change_of(scenario, load)
    for contestant in competing:
        task = Task(scenario, load, rows, contestant)
        plans = (task.start, *(plan for _, plan in task.changes))
        try:
            refused = task.refusal()
            if refused is not None:
                yield _told(record_of(contestant, scenario.name, plans, refused=refused), console)
                continue
            with console.status(f"{scenario.name}: {contestant.name}"):
                trace = run(task)
            if contestant.strategy == NEVER:
                references[contestant.start] = trace
            reference = references[contestant.start]
            truth = next(iter(references.values())).marks
            measures = measure(trace, reference, truth, scenario, load)
            outputs = outputs_of(trace, since - load.lead, until, since)
            found = {"measures": measures, "outputs": outputs, "used": trace.used}
            yield _told(record_of(contestant, scenario.name, plans, **found), console)
        except Exception as error:  # One that fails must not keep the others from being measured.
            failed = f"{type(error).__name__}: {error}"
            yield _told(record_of(contestant, scenario.name, plans, failed=failed), console)


def _told(record: Record, console: Console) -> Record:
    """The record, once it has been shown."""
    if record.measures is None:
        console.print(f"{record.contestant:<34}{record.refused and 'refused: '}{record.refused or record.failed}")
    else:
        m = record.measures
        alone = f"alone after {m.alone:6.3f} s" if m.alone is not None else ""
        exact = "" if not record.wrong else f"[bold red]{record.wrong}[/]"
        console.print(
            f"{record.title:<34}gap {m.gap:7.3f} s ({m.gap_ratio:5.2f})  p99 {m.delay_p99:7.3f} s  "
            f"extra {m.extra:>12,}  load {m.load:4.0%}  {alone} {exact}",
            soft_wrap=True,
        )
    return record


@contextmanager
def _hosts(name: str, wait: bool) -> Iterator[Host]:
    """A host that has run once, so that what is done only once in a process is behind it."""
    warm_up = next(iter(SCENARIOS.values()))
    task = Task(warm_up, QUICK[name], generate(warm_up, QUICK[name]), Contestant(NEVER))
    if name == "embedded":
        embedded.run(task)
        yield lambda task: embedded.run(task, wait=wait)
        return
    from benchmarks.plan_change import spark
    from midstream.spark.session import local_session

    session = local_session("plan change")

    def run(task: Task) -> Trace:
        with tempfile.TemporaryDirectory(prefix="midstream-plan-change-") as folder:
            return spark.run(task, session, Path(folder))

    try:
        run(task)
        yield run
    finally:
        session.stop()


def _picture(reports: Sequence[Report], folder: Path) -> Path:
    from benchmarks.plan_change.picture import draw

    draw(reports, folder / "plan_change.png")
    return folder / "plan_change.png"
