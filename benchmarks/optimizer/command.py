"""Measure the optimizer: `python -m benchmarks.optimizer [--quick] [--only SCENARIO] [--host H] [--out DIR]`.

Every scenario on the embedded engine, and some scenarios on Spark. Ends with 1 if a run fails, answers differ, or
`adaptive` misses what it must reach. A quick run shows that everything runs and agrees: its figures mean nothing; it is
written to build/benchmarks. A scenario that is measured by itself goes beside what was measured at the same load.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from benchmarks.optimizer import embedded
from benchmarks.optimizer.contestants import Contestant, decided_by, every_policy, kept, scheduled
from benchmarks.optimizer.course import Course
from benchmarks.optimizer.fixed_plans import fixed_plans
from benchmarks.optimizer.load import LOADS, QUICK
from benchmarks.optimizer.page import page
from benchmarks.optimizer.record import Record, Report, record_of
from benchmarks.optimizer.scenarios import SCENARIOS, STORY
from benchmarks.optimizer.schedule import best_schedule
from benchmarks.optimizer.trace import Trace
from benchmarks.optimizer.verdicts import verdicts, wrong

HERE = Path(__file__).resolve().parent.parent
HOSTS = ("embedded", "spark")
ON_SPARK = ("selectivity_flip",)
POLICIES_ON_SPARK = ("adaptive", "static")
"""A step on Spark takes a second, however few its rows are: one scenario and few contestants show that the loop is the
same; of the plans that are kept, only trees run."""

Host = Callable[[Course, Contestant], Trace]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write table and pictures; the exit code."""
    options = _parser().parse_args(arguments)
    console = Console(highlight=False)
    root = options.out or (HERE.parent / "build" / "benchmarks" if options.quick else HERE)
    loads = QUICK if options.quick else LOADS
    for host in options.host or (HOSTS[:1] if options.only else HOSTS):
        empty = Report(host, loads[host], quick=options.quick)
        report = empty.with_rows_on_disk(root / "results") if options.only else empty
        with _host(host) as run:
            for name in options.only or (SCENARIOS if host == "embedded" else ON_SPARK):
                console.rule(f"{host}, {name}: {SCENARIOS[name].title}")
                rows = list(_scenario(Course(SCENARIOS[name], loads[host]), host, run, console))
                report = report.with_rows(name, rows, SCENARIOS)
                report.save(root / "results")
    reports = [found for host in HOSTS if (found := Report.load_from(root / "results", host)) is not None]
    (root / "OPTIMIZER.md").write_text(page(reports))
    picture = (root if options.quick or options.out else HERE.parent / "docs") / "optimizer.png"
    _draw(reports[0], picture)
    written = ", ".join(os.path.relpath(path) for path in (root / "OPTIMIZER.md", picture, story_of(picture)))
    console.print(f"written: {written}")
    failed = [line for report in reports for name in report.scenarios for line in wrong(report.of(name))]
    missed = [v for report in reports for v in verdicts(report) if not v.met]
    failed += [f"{v.scenario}, {v.what}: {v.found}, required is {v.required}" for v in missed]
    for what in failed:
        console.print(f"WRONG  {what}", style="bold red", soft_wrap=True)
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small inputs, no verdicts")
    parser.add_argument("--only", action="append", choices=SCENARIOS, help="this scenario (may be repeated)")
    parser.add_argument("--host", action="append", choices=HOSTS, help="this host (may be repeated)")
    parser.add_argument("--out", type=Path, help="folder for OPTIMIZER.md, optimizer.png and results/")
    return parser


def _scenario(course: Course, host: str, run: Host, console: Console) -> Iterator[Record]:
    fixed = fixed_plans(course)
    plans, policies = (fixed.trees, POLICIES_ON_SPARK) if host == "spark" else (fixed.plans, every_policy())
    begins = fixed.worst if course.scenario.begins == "worst" else fixed.best
    yield from contested(course, plans, begins, policies, run, console)


def contested(
    course: Course, plans: Sequence[str], begins: str, policies: Sequence[str], run: Host, console: Console
) -> Iterator[Record]:
    """A row for each contestant: plans that are kept come first, for the best schedule follows from what they did."""
    rows = [_row(course, kept(plan), run, console) for plan in dict.fromkeys((*plans, begins))]
    yield from rows
    work = {row.contestant: row.work for row in rows if not row.failed}
    window = round(course.load.window / course.load.tick)
    others = [scheduled(*best_schedule(work, window)), *(decided_by(policy, begins) for policy in policies)]
    for contestant in others:
        yield _row(course, contestant, run, console)


def _row(course: Course, contestant: Contestant, run: Host, console: Console) -> Record:
    """What a contestant did; one that fails must not keep the others from being measured."""
    scenario = course.scenario.name
    try:
        with console.status(f"{scenario}: {contestant.name}"):
            record = record_of(contestant, scenario, run(course, contestant), course.load)
    except Exception as error:
        record = Record(scenario, contestant.name, contestant.kind, contestant.plan)
        record = replace(record, failed=f"{type(error).__name__}: {error}")
    console.print(
        f"{contestant.name:<44} work {record.joined:>9,.0f} ms, with reviews {record.total:>9,.0f}  "
        f"{len(record.switches):>3} switches  {record.seconds:6.1f} s  {record.results:>12,} results {record.failed}",
        soft_wrap=True,
    )
    return record


@contextmanager
def _host(name: str) -> Iterator[Host]:
    """A host that has run once, so that what is done only once in a process is behind it."""
    course = Course(next(iter(SCENARIOS.values())), QUICK[name])
    warm_up = decided_by("adaptive", fixed_plans(course).best)
    if name == "embedded":
        embedded.run(course, warm_up)
        yield embedded.run
        return
    from benchmarks.optimizer import spark
    from midstream.spark.session import local_session

    session = local_session("optimizer")

    def run(course: Course, contestant: Contestant) -> Trace:
        with tempfile.TemporaryDirectory(prefix="midstream-optimizer-") as folder:
            return spark.run(course, contestant, session, Path(folder))

    try:
        run(course, warm_up)
        yield run
    finally:
        session.stop()


def _draw(report: Report, path: Path) -> None:
    from benchmarks.optimizer.picture import draw, draw_story

    draw(report, path)
    draw_story(report, STORY, story_of(path))


def story_of(picture: Path) -> Path:
    """Where the picture of one scenario alone lies: the README's."""
    return picture.with_name("optimizer_story.png")
