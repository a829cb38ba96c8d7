"""`midstream add`: begin a query beside the running ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from midstream.cli.checkpoint import Checkpoint, CheckpointPath
from midstream.cli.console import AsJson
from midstream.cli.options import Operator, OperatorOptions, SqlText, named_values, sql_text
from midstream.cli.outcome import WaitSeconds, send

FORMATS = ("parquet", "json", "csv")


def add(
    path: CheckpointPath,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name no running query has.")],
    sql: SqlText,
    plan: Annotated[str | None, typer.Option("--plan", help="Its plan; without one, joins in FROM order.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Where its results go. Default: CKPT/results/NAME")
    ] = None,
    file_format: Annotated[
        str, typer.Option("--format", metavar="F", help="parquet, json or csv; for results in --out DIR.")
    ] = "parquet",
    operator: Operator = None,
    operator_option: OperatorOptions = None,
    no_history: Annotated[
        bool, typer.Option("--no-history", help="Let it see only the rows that arrive from its first step on.")
    ] = False,
    wait: WaitSeconds = None,
    as_json: AsJson = False,
) -> None:
    """Begin a query over the streams of a running job.

    The rows that arrive from then on meet those that the running queries hold of the same join; --wait says what the
    query sees, and from when its answers are exact.
    """
    from midstream.model.commands import AddQuery, operator_json

    if file_format not in FORMATS:
        raise typer.BadParameter(f"{file_format!r} is not one of {', '.join(FORMATS)}", param_hint="--format")
    sink: dict[str, Any] | None = {"format": file_format, "path": str(out.absolute())} if out else None
    above = operator_json(operator, named_values(operator_option, "--operator-option"))
    send(Checkpoint.at(path), AddQuery(name, sql_text(sql), plan, sink, above, not no_history), wait, as_json)
