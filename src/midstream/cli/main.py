"""The entry point: the commands, exit codes and readable errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.main import get_command

from midstream import __version__
from midstream.cli.arguments import CommandGroup, place_of
from midstream.cli.calibrate import calibrate
from midstream.cli.check import check
from midstream.cli.commands import Commands, add_to, verbs
from midstream.cli.compact import compact
from midstream.cli.dashboard import dashboard
from midstream.cli.demo import demo
from midstream.cli.doctor import doctor
from midstream.cli.exit_codes import failure_text
from midstream.cli.explain import explain
from midstream.cli.function_list import functions
from midstream.cli.lab import lab
from midstream.cli.metrics import metrics
from midstream.cli.optimizer_commands import optimize, plans
from midstream.cli.run import run
from midstream.cli.savepoint import fork, rewind, savepoint
from midstream.cli.state import state
from midstream.cli.status import status
from midstream.cli.stop_job import stop
from midstream.cli.table import table

OK, FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130


app = typer.Typer(
    cls=Commands,
    name="midstream",
    help="Run streaming joins on Spark or in one process, and change their plans while they run.",
    epilog="Each command shows examples: midstream COMMAND --help. With --json a command prints one JSON value.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
FUNCTIONS: dict[str, Any] = {
    one.__name__: one
    for one in (
        demo,
        check,
        run,
        stop,
        status,
        explain,
        metrics,
        table,
        optimize,
        plans,
        dashboard,
        state,
        savepoint,
        fork,
        rewind,
        compact,
        doctor,
        functions,
        calibrate,
        lab,
        *verbs().values(),
    )
}
# A group is shown where its first command is.
for name in sorted(FUNCTIONS, key=lambda name: list(CommandGroup).index(place_of(FUNCTIONS[name]).group)):
    add_to(app, name, FUNCTIONS[name])


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"midstream {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@cache
def _commands() -> Callable[..., Any]:
    # Putting all commands with their options together takes longer than most take to run, so it is done once.
    return get_command(app)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 wrong use, 130 interrupted.

    A failure prints one message on stderr, with the place and the remedy. A traceback appears only if
    `MIDSTREAM_TRACEBACK` is set.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal of another encoding must not end a command that has done its work.
            stream.reconfigure(errors="backslashreplace")
    try:
        given = None if arguments is None else list(arguments)
        result = _commands()(args=given, prog_name="midstream", standalone_mode=False)
    except typer.Abort:
        return INTERRUPTED
    except Exception as error:
        if os.environ.get("MIDSTREAM_TRACEBACK"):
            raise
        text, code = failure_text(error)
        sys.stderr.write(text + "\n")
        return code
    return result if isinstance(result, int) else OK
