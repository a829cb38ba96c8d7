"""`midstream table`: give a static table of a running job its rows."""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated

import typer

from midstream.cli.arguments import AsJson, CheckpointPath, CommandGroup, WaitSeconds, placed
from midstream.cli.exit_codes import WrongUse


@placed(CommandGroup.CHANGE, "midstream table ckpt rates rates.csv")
def table(
    path: CheckpointPath,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The name of the table in queries. A new name declares a new table.")
    ],
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file or a folder, as a path or a URL.")],
    file_format: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="F", help="parquet, orc, csv or json. Default: the ending of the file's name."
        ),
    ] = None,
    schema: Annotated[
        str | None, typer.Option("--schema", metavar="DDL", help="The table's columns, in the order of the file.")
    ] = None,
    wait: WaitSeconds = None,
    as_json: AsJson = False,
) -> None:
    """Set or replace the rows of a static table. From its next step on, the job joins stream rows with the new rows.

    The first line of a CSV file has the names of its columns. If the table already has exactly these rows, its version
    stays the same. You cannot change the table's columns while a query reads them.
    """
    from midstream.checkpoint.reader import Checkpoint, upcoming
    from midstream.cli.send import send
    from midstream.cli.source_columns import check_table_path
    from midstream.embedded.file_formats import READERS
    from midstream.embedded.folder_source import table_rows
    from midstream.pipeline.static_tables import set_table
    from midstream.sql.job_specs import TableSpec
    from midstream.storage.files import FileStore
    from midstream.storage.places import located

    kind = file_format or PurePath(file).suffix.lstrip(".")
    if kind not in READERS:
        raise WrongUse(
            f"{kind or file!r} is not a format for tables", place="--format", remedy=f"use {', '.join(READERS)}"
        )
    checkpoint = Checkpoint.open(path)
    checkpoint.manifest()  # Where there is none yet, that is said before the file is read.
    check_table_path(name, file)
    options = {"header": "true"} if kind == "csv" else {}
    rows = table_rows(name, TableSpec(kind, located(file), schema, options))
    with checkpoint.commands.bringing():
        manifest = checkpoint.manifest()
        known = upcoming(manifest, checkpoint.folders).tables
        send(path, set_table(name, rows, known, FileStore(checkpoint.folders.chunks), manifest.step), wait, as_json)
