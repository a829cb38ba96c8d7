"""`midstream state`: what operators hold."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from midstream.cli.arguments import AsJson, CheckpointPath, CommandGroup, placed
from midstream.cli.exit_codes import WrongUse
from midstream.cli.output import busy, print_json, print_table
from midstream.model.words import size_text, time_text

SHOWN = 20


@placed(CommandGroup.LOOK, "midstream state ckpt")
def state(
    path: CheckpointPath,
    query: Annotated[
        str | None, typer.Argument(metavar="QUERY", help="Show only the states that this query reads.")
    ] = None,
    operator: Annotated[
        str | None,
        typer.Option(
            "--operator", metavar="NAME", help="Show rows of one operator, by its name in the list of states."
        ),
    ] = None,
    step: Annotated[
        str | None, typer.Option("--step", metavar="N", help="A kept step or a savepoint. Default: the newest step.")
    ] = None,
    rows: Annotated[int, typer.Option("--rows", metavar="N", min=0, help="The number of rows to show.")] = SHOWN,
    as_json: AsJson = False,
) -> None:
    """Show the states of a job's operators by lane (rows, bytes, times), or the rows of one operator."""
    from midstream.cli.savepoint import step_of
    from midstream.pipeline.opened import OpenCheckpoint

    checkpoint, at = OpenCheckpoint.of(path), None if step is None else step_of(step)
    if query is not None:
        checkpoint.report(at).query(query)
    if operator is not None:
        with busy(f"reading {operator}", as_json):
            table = checkpoint.state(operator, at).arrow()
        shown = table.slice(0, rows).to_pylist()
        if as_json:
            print_json({"operator": operator, "rows": table.num_rows, "shown": shown})
        else:
            values = [tuple(map(_text, row.values())) for row in shown]
            print_table(f"{operator}: {len(shown)} of {table.num_rows:,} rows", table.column_names, values)
        return
    if rows != SHOWN:
        raise WrongUse("--rows works only with --operator", place="--rows", remedy="add --operator NAME")
    with busy("reading the states", as_json):
        held = [one for one in checkpoint.states(at) if query is None or query in one.queries]
    if as_json:
        print_json([vars(one) for one in held])
        return
    print_table(
        "states",
        ("operator", "lane", "rows", "size", "chunks", "oldest", "newest", "queries"),
        [
            (s.name, s.lane, s.rows, size_text(s.bytes), s.chunks, time_text(s.oldest), time_text(s.newest),
             ", ".join(s.queries))
            for s in held
        ],
    )  # fmt: skip


def _text(value: Any) -> Any:
    return value if isinstance(value, int | float) or value is None else str(value)
