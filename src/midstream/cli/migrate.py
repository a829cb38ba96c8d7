"""`midstream migrate`: carry a running query to another plan."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from midstream.cli.checkpoint import Checkpoint, CheckpointPath, QueryName
from midstream.cli.console import AsJson, WrongUse
from midstream.cli.outcome import WaitSeconds, send


def migrate(
    path: CheckpointPath,
    query: QueryName,
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="The new plan, such as '((A B) C)'.")],
    strategy: Annotated[str, typer.Option("--strategy", metavar="S", help="How state gets there.")] = "moving_state",
    option: Annotated[
        list[str] | None, typer.Option("--option", metavar="NAME=VALUE", help="For the strategy; may be repeated.")
    ] = None,
    wait: WaitSeconds = None,
    as_json: AsJson = False,
) -> None:
    """Carry a running query to another plan; its answers go on, none lost, none doubled.

    The plan and the strategy are checked against the query before the command is sent.
    """
    from midstream.model.commands import Migrate

    options = dict(_option(text) for text in option or ())
    send(Checkpoint.at(path), Migrate(query, plan, strategy, options), wait, as_json)


def _option(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise WrongUse(f"{text!r} is not NAME=VALUE", place="--option", remedy="write it as in hold_new=true")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value
