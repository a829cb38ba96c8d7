"""`midstream demo`: a year of flights through Spark, plans changed in mid-run, every answer checked."""

from __future__ import annotations

import shutil
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from midstream.cli.arguments import AsJson
from midstream.cli.errors import Failed, WrongUse
from midstream.cli.output import print_json, print_table, progress_bar, say
from midstream.cli.spark_session import spark_session

if TYPE_CHECKING:
    from rich.progress import Progress

    from midstream.demo.acts import Act
    from midstream.demo.check import AnswerCheck
    from midstream.demo.flights import Replay
    from midstream.demo.play import Performance

MARK = ".midstream-demo"
ALL_WEEKS = 53


def demo(
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="Where input, state and results go; replaces an earlier demo's."),
    ] = Path("midstream-demo"),
    weeks: Annotated[
        int, typer.Option("--weeks", min=4, max=ALL_WEEKS, help="How many weeks of the year to replay.")
    ] = ALL_WEEKS,
    cores: Annotated[int, typer.Option("--cores", min=1, help="Cores to use.")] = 2,
    as_json: AsJson = False,
) -> None:
    """Replay the flights of 2013 through Spark, change the plan in mid-run, check the answers against DuckDB."""
    from midstream.demo.flights import prepare

    began = time.monotonic()
    _clear(out)
    with progress_bar(as_json) as progress:
        task = progress.add_task("preparing the flights of 2013", total=None)
        replays = prepare(out / "input", weeks)
        progress.remove_task(task)
        if not as_json:
            rows = sum(replay.rows for replay in replays.values())
            say(f"{rows:,} rows of {', '.join(replays)} for {weeks} weeks of 2013, a file a week, in {out / 'input'}")
        acts = _play(progress, replays, out, weeks, cores, as_json)
    seconds = time.monotonic() - began
    if as_json:
        print_json({"seconds": round(seconds, 1), "equal": all(act["equal"] for act in acts), "acts": acts})
    wrong = [act["act"] for act in acts if not act["equal"]]
    if wrong:
        raise Failed(
            f"the answer differs from DuckDB's: {', '.join(wrong)}",
            place=str(out),
            remedy="report it, with this folder",
        )
    if not as_json:
        total = sum(act["rows"] for act in acts)
        say(f"\nBoth migrated answers equal DuckDB's over the whole input: {total:,} rows.", bold=True)
        say(f"{seconds:.0f} seconds in all.")
        say(f"Look closer: midstream explain {acts[0]['checkpoint']} {acts[0]['query']} --analyze")


def _play(
    progress: Progress, replays: dict[str, Replay], out: Path, weeks: int, cores: int, quiet: bool
) -> list[dict[str, Any]]:
    task = progress.add_task("starting Spark", total=None)
    from midstream.demo.acts import ACTS
    from midstream.demo.check import check
    from midstream.demo.play import play

    acts = []
    with spark_session("midstream demo", cores, out / "spark.log") as session:
        progress.remove_task(task)
        for act in ACTS:
            if not quiet:
                say(f"\n{act.question}", bold=True)
            task = progress.add_task(f"week by week, {act.old_plan}", total=weeks)
            figures = play(act, replays, out / act.name, session, cores, partial(progress.update, task))
            progress.update(task, description="asking DuckDB", total=None)
            verdict = check(act, replays, out / act.name / "results")
            progress.remove_task(task)
            acts.append(_as_json(act, figures, verdict, out))
            if not quiet:
                _show(act, figures, verdict, out)
    return acts


def _clear(out: Path) -> None:
    """Make the folder empty, if it is a demo's or empty already."""
    if out.exists() and not (out.is_dir() and ((out / MARK).exists() or not any(out.iterdir()))):
        raise WrongUse("there is something else already", place=str(out), remedy="name another folder with --out DIR")
    shutil.rmtree(out, ignore_errors=True)
    try:
        out.mkdir(parents=True)
        (out / MARK).touch()
    except OSError as error:
        raise WrongUse(
            f"cannot make the folder: {error.strerror}", place=str(out), remedy="name another one with --out DIR"
        ) from error


def _show(act: Act, figures: Performance, verdict: AnswerCheck, out: Path) -> None:
    rows = [
        (
            f"{phase.first + 1} to {phase.last + 1}",
            phase.plan,
            phase.rows_in,
            phase.rows_out,
            phase.comparisons,
            phase.old_plan_comparisons,
        )
        for phase in figures.phases
    ]
    print_table("", ("weeks", "plan", "rows in", "rows out", "comparisons", f"under {act.old_plan}"), rows)
    if figures.changed_at is not None:
        after = figures.phases[-1]
        share = 1 - after.comparisons / max(after.old_plan_comparisons, 1)
        say(
            f"Before week {figures.changed_at + 1} the running query was carried from {act.old_plan} to "
            f"{act.new_plan}; moving its state took {figures.migration_comparisons:,} comparisons."
        )
        say(f"It paid: {share:.0%} fewer comparisons from then on. {act.why}")
    print_table("most often", verdict.columns, verdict.highlights)
    judgement = (
        "equal to" if verdict.equal else f"NOT EQUAL ({verdict.missing:,} missing, {verdict.surplus:,} too many) to"
    )
    say(
        f"{verdict.rows:,} rows in {out / act.name / 'results'} after {figures.seconds:.0f} seconds: "
        f"{judgement} DuckDB's {verdict.expected_rows:,}."
    )


def _as_json(act: Act, figures: Performance, verdict: AnswerCheck, out: Path) -> dict[str, Any]:
    from midstream.demo.play import QUERY

    return {
        "act": act.name,
        "question": act.question,
        "query": QUERY,
        "sql": act.sql,
        "checkpoint": str(out / act.name / "checkpoint"),
        "results": str(out / act.name / "results"),
        "equal": verdict.equal,
        "rows": verdict.rows,
        "expected_rows": verdict.expected_rows,
        "highlights": [dict(zip(verdict.columns, row, strict=True)) for row in verdict.highlights],
        **asdict(figures),
    }
