"""`midstream explain`: what runs a query of a job."""

from __future__ import annotations

from typing import Annotated

import typer

from midstream.cli.arguments import AsJson, CheckpointPath, CommandGroup, QueryName, placed
from midstream.cli.output import print_json, say


@placed(
    CommandGroup.LOOK,
    "midstream explain ckpt pairs",
    "midstream explain ckpt pairs --verbose",
    "midstream explain ckpt pairs --json",
)
def explain(
    path: CheckpointPath,
    query: QueryName,
    analyze: Annotated[
        bool,
        typer.Option("--analyze", help="Show operators, their counters and their states."),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", help="Show operators, states, slices and nodes, in the papers' terms."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show a running query's plan as a tree, with the rows and the work of each part.

    For each part, the tree shows the numbers of input, output and kept rows, and the part's share of compared pairs.
    With --verbose or --analyze, the tree shows the operators, and the chain of queries that share rows and joins.
    """
    from midstream.checkpoint.reader import Checkpoint
    from midstream.explain import explain as explain_query
    from midstream.explain.plain import explain_plainly

    manifest = Checkpoint.open(path).manifest()
    if as_json:
        print_json(explain_query(manifest, query, analyze=analyze, format="json"))
    elif not verbose and not analyze:
        say(explain_plainly(manifest, query))
    else:
        say(explain_query(manifest, query, analyze=analyze))
