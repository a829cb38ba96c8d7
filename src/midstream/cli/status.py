"""`midstream status`: how a job stands, once or again and again."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from midstream.cli.arguments import AsJson, CheckpointPath, CommandGroup, placed
from midstream.cli.output import fields_text, print_json, print_table, say, terminal
from midstream.cli.status_tables import print_report
from midstream.model.words import brief_text

if TYPE_CHECKING:
    from midstream.checkpoint.reader import Checkpoint


EVENTS_WATCHED = 8
"""Events below a status that is shown again and again."""


@placed(
    CommandGroup.LOOK,
    "midstream status ckpt",
    "midstream status ckpt --watch",
    "midstream status ckpt --json",
)
def status(
    path: CheckpointPath,
    events: Annotated[
        int | None,
        typer.Option("--events", metavar="N", min=0, help="Also show the last N events. Default with --watch: 8."),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Repeat the report until the job ends or you interrupt the command.")
    ] = False,
    every: Annotated[
        float, typer.Option("--every", metavar="SECONDS", min=0.1, help="The time between two reports, with --watch.")
    ] = 2.0,
    as_json: AsJson = False,
) -> None:
    """Show the status of a job: its state, steps, streams, queries, migrations, and waiting commands."""
    from midstream.checkpoint.reader import Checkpoint

    checkpoint = Checkpoint.open(path)
    if watch:
        shown = EVENTS_WATCHED if events is None else events
        watched(checkpoint, every, lambda: _tell(checkpoint, shown, as_json=False), as_json)
    else:
        _tell(checkpoint, events or 0, as_json)


def _tell(checkpoint: Checkpoint, events: int, as_json: bool) -> None:
    from midstream.checkpoint.liveness import Liveness
    from midstream.explain.event_sentence import event_sentence
    from midstream.model.codec import decode
    from midstream.model.events import Event
    from midstream.model.step_time import StepUnderWay
    from midstream.pipeline.lost_rows import dead_files

    report = checkpoint.report()
    value = checkpoint.status(report) | ({"events": checkpoint.last_events(events)} if events else {})
    dead = dead_files(checkpoint.folders, report)
    if as_json:
        print_json(value | ({"dead_files": [asdict(one) for one in dead]} if dead else {}))
        return
    life = Liveness(value["state"], value["since"], value["reason"], value["process"])
    say(life.sentence(time.time()), bold=life.state == "failed")
    print_report(report, value["checkpoint"])
    print_table("dead files: skipped", ("stream", "step", "file", "why"), [tuple(asdict(one).values()) for one in dead])
    if value["under_way"]:
        say(decode(StepUnderWay, value["under_way"]).sentence(time.time()))
    if value["time"]:
        # The times of a killed job's last seconds may be missing.
        until = "" if value["time"]["step"] == value["step"] else f"until step {value['time']['step']:,} "
        say(f"{until}{time_line(value['time'])}")
    if value["savepoints"]:
        say("savepoints: " + ", ".join(f"{name}: step {step:,}" for name, step in value["savepoints"].items()))
    waits = ["for the next batch with data"] if checkpoint.manifest().is_on_spark else []
    waits += [] if life.takes_commands else ["after the next start" if waits else "for the next start"]
    print_table(
        f"commands not taken yet{': they wait ' if waits else ''}{', '.join(waits)}",
        ("id", "command", "what"),
        [(one["id"], one["command"], fields_text(one, "id", "command")) for one in value["waiting_commands"]],
    )
    happened = [decode(Event, one) for one in value.get("events", ())]
    print_table("events", ("step", "event", "what"), [(one.step, one.kind, event_sentence(one)) for one in happened])


def time_line(time: Mapping[str, Any]) -> str:
    """Summarise the times of steps in one line.

    >>> time_line({"steps": 20, "seconds": 0.25, "last": 0.3, "phases": {"fold": 0.2}, "interval": 1.0,
    ...     "rows_per_second": 1234.5, "watermark_lag": None, "behind": 9.68e6, "backlog": {"A": 3, "B": 0}})
    'a step takes 250 ms (fold 200 ms), one begins every 1 s, 1,234 rows/s, backlog 3 (A)'
    """
    from midstream.explain.life_line import lags
    from midstream.model.step_time import against_interval

    phases = ", ".join(f"{name} {brief_text(took)}" for name, took in time["phases"].items())
    parts = [f"a step takes {brief_text(time['seconds'])} ({phases})"]
    if beside := against_interval(time["seconds"], time["interval"]):
        parts.append(beside)
    if time["rows_per_second"] is not None:
        parts.append(f"{time['rows_per_second']:,.0f} rows/s")
    parts += lags(time["behind"], time["watermark_lag"])
    waiting = {name: count for name, count in time["backlog"].items() if count}
    if waiting:
        each = waiting if len(waiting) == 1 else [f"{name} {count:,}" for name, count in waiting.items()]
        parts.append(f"backlog {sum(waiting.values()):,} ({', '.join(each)})")
    return ", ".join(parts)


def watched(checkpoint: Checkpoint, every: float, show: Callable[[], None], as_json: bool) -> None:
    """Show a job's status again and again, until the job has ended or you interrupt the command.

    On a terminal, the output of `show` replaces the whole screen. If stdout is not a terminal, each report is one line
    with the state and the pace of the job. With `as_json`, each report is the job's status as one JSON value.
    """

    def as_line() -> None:
        print_json(checkpoint.status(checkpoint.report()), indent=None)
        sys.stdout.flush()

    with suppress(KeyboardInterrupt):
        if as_json:
            _again(checkpoint, every, as_line)
        elif terminal().is_terminal:
            _on_screen(checkpoint, every, show)
            show()
        else:
            _again(checkpoint, every, lambda: _line(checkpoint))


def _again(checkpoint: Checkpoint, every: float, show: Callable[[], None]) -> None:
    while True:
        runs = checkpoint.liveness().takes_commands
        show()
        if not runs:
            return
        time.sleep(every)


def _on_screen(checkpoint: Checkpoint, every: float, show: Callable[[], None]) -> None:
    from rich.live import Live
    from rich.text import Text

    with Live(console=terminal(), screen=True, auto_refresh=False) as live:

        def renew() -> None:
            with terminal().capture() as printed:
                show()
            live.update(Text.from_ansi(printed.get()), refresh=True)

        _again(checkpoint, every, renew)


def _line(checkpoint: Checkpoint) -> None:
    from midstream.explain.life_line import life_line

    times = checkpoint.step_times()
    under_way = checkpoint.under_way(times[-1].step if times else -1)
    so_far = "" if under_way is None else f" · {under_way.sentence(time.time())}"
    say(f"{checkpoint.liveness().sentence(time.time())} · {life_line(times) or 'no step yet'}{so_far}")
