"""`midstream demo`: a year of flights through Spark, plans changed in mid-run, by hand and by the optimizer."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from midstream.cli.arguments import AsJson, CommandGroup, placed
from midstream.cli.demo_act import act_as_json, show_act
from midstream.cli.exit_codes import Failed, WrongUse
from midstream.cli.output import print_json, progress_bar, say
from midstream.cli.spark_session import spark_session

if TYPE_CHECKING:
    from pyarrow import Table
    from rich.progress import Progress


MARK = ".midstream-demo"
ALL_WEEKS = 53


@placed(CommandGroup.RUN, "midstream demo", "midstream demo --dashboard --out build/demo")
def demo(
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="DIR", help="The folder for all files; the demo replaces the files of an earlier run."
        ),
    ] = Path("midstream-demo"),
    weeks: Annotated[
        int, typer.Option("--weeks", min=4, max=ALL_WEEKS, help="The number of weeks to replay.")
    ] = ALL_WEEKS,
    cores: Annotated[int, typer.Option("--cores", min=1, help="Cores to use.")] = 2,
    dashboard: Annotated[
        bool,
        typer.Option("--dashboard", help="Run an endless job without Spark, and print the address of its dashboard."),
    ] = False,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="The dashboard's port; 0 means any free port.")
    ] = 8765,
    pace: Annotated[
        float, typer.Option("--pace", min=0, help="With --dashboard: the seconds from one step to the next step.")
    ] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Replay the flights of 2013 through Spark, change plans during the run, and check the answers with DuckDB.

    With --dashboard, the command instead runs an endless job over the flights without Spark. You can watch and change
    the job in the browser.
    """
    from midstream.demo.flights import read_streams

    began = time.monotonic()
    _clear(out)
    if dashboard:
        show_live(out, port, pace)
        return
    with progress_bar(as_json) as progress:
        task = progress.add_task("preparing the flights of 2013", total=None)
        streams = read_streams()
        progress.remove_task(task)
        acts = _play(progress, streams, out, weeks, cores, as_json)
    seconds = time.monotonic() - began
    if as_json:
        print_json({"seconds": round(seconds, 1), "equal": all(act["equal"] for act in acts), "acts": acts})
    wrong = [act["act"] for act in acts if not act["equal"]]
    if wrong:
        raise Failed(
            f"the answers of these acts differ from DuckDB's answers: {', '.join(wrong)}",
            place=str(out),
            remedy="report this fault, and attach the folder",
        )
    if not as_json:
        total = sum(act["rows"] for act in acts)
        say(f"\nAll answers equal DuckDB's over the whole input: {total:,} rows.", bold=True)
        say(f"{seconds:.0f} seconds in all.")
        say(f"Look closer: midstream explain {acts[0]['checkpoint']} {acts[0]['query']} --analyze")
        say(f"or:          midstream plans {acts[-1]['checkpoint']} {acts[-1]['query']}")


def _play(
    progress: Progress, streams: Mapping[str, Table], out: Path, weeks: int, cores: int, quiet: bool
) -> list[dict[str, Any]]:
    task = progress.add_task("starting Spark", total=None)
    from midstream.demo.acts import ACTS
    from midstream.demo.flights import prepare
    from midstream.demo.play import play, rehearse
    from midstream.demo.whole_answer import check
    from midstream.model.optimization import MODE_OFF

    acts = []
    with spark_session("midstream demo", cores, out / "spark.log") as session:
        progress.remove_task(task)
        for act in ACTS:
            folder, span = out / act.name, act.span(weeks)
            if not quiet:
                say(f"\n{act.question}", bold=True)
            task = progress.add_task(f"file by file, {act.begins}", total=span.files)
            replays = prepare({name: streams[name] for name in act.streams}, folder / "input", span)
            figures = play(act, replays, folder, session, cores, partial(progress.update, task))
            progress.update(task, description="asking DuckDB", total=None)
            verdict = check(act, replays, folder / "results")
            rehearsals = dict[str, tuple[float, ...]]()
            if act.is_optimized:
                progress.update(task, description="once more without Spark, side by side")
                rehearsals |= {mode: rehearse(act, replays, mode).seconds for mode in ("auto", MODE_OFF)}
            progress.remove_task(task)
            acts.append(act_as_json(act, figures, verdict, rehearsals, folder))
            if not quiet:
                rows = sum(replay.rows for replay in replays.values())
                dates = span.dates(0, span.files - 1)
                say(f"{rows:,} rows of {', '.join(replays)}, {dates}, {span.days} days a file, in {folder / 'input'}")
                show_act(act, span, figures, verdict, rehearsals, folder)
    return acts


def _clear(out: Path) -> None:
    if out.exists() and not (out.is_dir() and ((out / MARK).exists() or not any(out.iterdir()))):
        raise WrongUse(
            "the folder has files that the demo did not write",
            place=str(out),
            remedy="name another folder with --out DIR",
        )
    shutil.rmtree(out, ignore_errors=True)
    try:
        out.mkdir(parents=True)
        (out / MARK).touch()
    except OSError as error:
        raise WrongUse(
            f"cannot make the folder: {error.strerror}", place=str(out), remedy="name another folder with --out DIR"
        ) from error


def show_live(out: Path, port: int, pace: float) -> None:
    """Start the job and its dashboard, and print the dashboard's address."""
    from midstream.demo.flights import read_streams
    from midstream.demo.live import go_on, live_engine

    streams = read_streams()
    with live_engine(streams, out / "live") as engine, engine.dashboard(port=port, control=True) as dashboard:
        say("Flights from JFK and LGA of 2013 are joined with their weather, four days a step, over and over.")
        say(f"dashboard: {dashboard.url}")
        say("In summer its steps take several times as long. Another plan is proposed there, in some ten seconds:")
        say("approve it, and see them become fast again. Until you answer it, the proposal stays.")
        say(f"or from another terminal: midstream plans {out / 'live'} flights. Control+C ends it.")
        with suppress(KeyboardInterrupt):
            go_on(engine, streams, pace)
