"""`midstream compact`: merge the files of results into few."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from midstream.cli.arguments import AsJson, CheckpointPath, CommandGroup, placed
from midstream.cli.output import print_json, progress_bar, say
from midstream.model.words import counted


@placed(CommandGroup.RECOVER, "midstream compact ckpt pairs")
def compact(
    path: CheckpointPath,
    query: Annotated[
        str | None,
        typer.Argument(metavar="QUERY", help="One query. Default: all queries whose results are Parquet files."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Merge the small result files into a few large files, in a folder next to the folder of the sink.

    The job may be running. The command changes nothing in the folder of the sink. If the folder of the sink is DIR, the
    folder DIR.merged/current contains the rows of all steps so far, each row once. Run the command again when readers
    need newer rows. The new run replaces DIR.merged/current atomically.
    """
    from midstream.checkpoint.reader import Checkpoint
    from midstream.pipeline.merge_results import Merging, merge_results
    from midstream.sinks import FileSink, restored
    from midstream.storage.places import located

    checkpoint = Checkpoint.open(located(path))
    manifest = checkpoint.manifest()
    names = [query] if query is not None else []
    if query is None:
        for name, entry in ((name, manifest.queries[name]) for name in manifest.asked_queries):
            sink = restored(entry.sink, checkpoint.folders.results(name))
            names += [name] if isinstance(sink, FileSink) and sink.format == "parquet" else []
    done = dict[str, Merging]()
    with progress_bar(as_json) as progress:
        task = progress.add_task("merging results", total=len(names))
        for name in names:
            progress.update(task, description=f"merging results of {name}")
            done[name] = merge_results(checkpoint, name)
            progress.advance(task)
    if as_json:
        print_json({name: _as_json(one) for name, one in done.items()})
        return
    for name, one in done.items():
        rows = sum(part.rows for part in one.parts)
        new, files = counted(one.read, "new file"), counted(len(one.parts), "file")
        say(f"{name}: {new}; {counted(rows, 'row')} in {files} in {one.merged.current}")
    if not done:
        say("no query has results in Parquet files")


def _as_json(one: Any) -> dict[str, Any]:
    through = one.parts[-1].through.step if one.parts else None
    rows = sum(part.rows for part in one.parts)
    return {
        "read": one.read,
        "rows": rows,
        "through": through,
        "current": one.merged.current,
        "files": one.merged.files(),
    }
