"""`midstream explain`: what runs a query of a job."""

from __future__ import annotations

from typing import Annotated

import typer

from midstream.cli.arguments import AsJson, CheckpointPath, QueryName
from midstream.cli.output import print_json, say


def explain(
    path: CheckpointPath,
    query: QueryName,
    analyze: Annotated[bool, typer.Option("--analyze", help="Add what was counted and what is kept.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the plan of a running query, its operators, and the queries it shares rows and joins with (its chain)."""
    from midstream.checkpoint.reader import Checkpoint
    from midstream.explain import explain as explain_query

    manifest = Checkpoint.open(path).manifest()
    if as_json:
        print_json(explain_query(manifest, query, analyze=analyze, format="json"))
    else:
        say(explain_query(manifest, query, analyze=analyze))
