"""`midstream explain`: what serves a query."""

from __future__ import annotations

from typing import Annotated

import typer

from midstream.cli.checkpoint import Checkpoint, CheckpointPath, QueryName
from midstream.cli.console import AsJson, print_json, say


def explain(
    path: CheckpointPath,
    query: QueryName,
    analyze: Annotated[bool, typer.Option("--analyze", help="Add counters and states.")] = False,
    as_json: AsJson = False,
) -> None:
    """The plan of a running query, the operators that serve it, and the chain it shares with others."""
    from midstream.explain import explain as explain_query

    manifest = Checkpoint.at(path).manifest()
    if as_json:
        print_json(explain_query(manifest, query, analyze=analyze, format="json"))
    else:
        say(explain_query(manifest, query, analyze=analyze))
