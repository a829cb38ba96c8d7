"""`midstream migrate`: carry a running query to another plan."""

from __future__ import annotations

from typing import Annotated

import typer

from midstream.cli.checkpoint import Checkpoint, CheckpointPath, QueryName
from midstream.cli.console import AsJson, WrongUse
from midstream.cli.options import Operator, OperatorOptions, named_values
from midstream.cli.outcome import WaitSeconds, send


def migrate(
    path: CheckpointPath,
    query: QueryName,
    plan: Annotated[
        str, typer.Argument(metavar="PLAN", help="The new plan, such as '((A B) C)'; optional with --operator.")
    ] = "",
    strategy: Annotated[str, typer.Option("--strategy", metavar="S", help="How state gets there.")] = "moving_state",
    option: Annotated[
        list[str] | None, typer.Option("--option", metavar="NAME=VALUE", help="For the strategy; may be repeated.")
    ] = None,
    operator: Operator = None,
    operator_option: OperatorOptions = None,
    together: Annotated[
        bool, typer.Option("--together", help="Carry the shared plan under all the queries that share it.")
    ] = False,
    wait: WaitSeconds = None,
    as_json: AsJson = False,
) -> None:
    """Carry a running query to another plan; its answers go on, none lost, none doubled.

    A query that shares its plan with others leaves them, unless all go --together. The plan and the strategy are
    checked against the query before the command is sent.
    """
    from midstream.model.commands import Migrate, operator_json

    if not plan and operator is None:
        raise WrongUse("there is no plan to go to", place="PLAN", remedy="name a plan, an operator, or both")
    above = operator_json(operator, named_values(operator_option, "--operator-option"))
    options = named_values(option, "--option")
    send(Checkpoint.at(path), Migrate(query, plan, strategy, options, above, together), wait, as_json)
