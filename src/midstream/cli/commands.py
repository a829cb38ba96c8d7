"""`midstream add`, `change`, `drop`, `migrate`, `spread`, `rescale`, `reshare`: commands to a job, through its log."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from midstream.cli.arguments import (
    AsJson,
    CheckpointPath,
    Nodes,
    Operator,
    OperatorOptions,
    QueryName,
    SqlText,
    WaitSeconds,
    named_values,
    number_of,
    sql_text,
)
from midstream.cli.errors import WrongUse
from midstream.cli.send import send
from midstream.runtime.lane_key import SLOTS
from midstream.sinks.formats import FORMATS


def add(
    path: CheckpointPath,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name that no running query has.")],
    sql: SqlText,
    plan: Annotated[
        str | None, typer.Option("--plan", help="Its plan, such as '((A B) C)'; default: joins in the order of FROM.")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="DIR", help="Folder or URL of its results. Default: CKPT/results/NAME"),
    ] = None,
    file_format: Annotated[
        str, typer.Option("--format", metavar="F", help="parquet, json or csv; for results in --out DIR.")
    ] = "parquet",
    operator: Operator = None,
    operator_option: OperatorOptions = None,
    spread: Annotated[
        str | None,
        typer.Option("--spread", metavar="S", help="Over nodes: psp_d, ..., or auto; see docs/spreading.md."),
    ] = None,
    nodes: Nodes = None,
    no_history: Annotated[
        bool, typer.Option("--no-history", help="Let it see only the rows that arrive from its first step on.")
    ] = False,
    wait: WaitSeconds = None,
    as_json: AsJson = False,
) -> None:
    """Add a query over the streams of a running job.

    Rows that arrive from then on join those that running queries of the same join have kept; --wait says which these
    are, and from when the answers are exact.
    """
    from midstream.model.command import declare_operator
    from midstream.state.store.places import located
    from midstream.step.commands.add_query import AddQuery

    if file_format not in FORMATS:
        raise typer.BadParameter(f"{file_format!r} is not one of {', '.join(FORMATS)}", param_hint="--format")
    sink: dict[str, Any] | None = {"format": file_format, "path": located(out)} if out else None
    above = declare_operator(operator, named_values(operator_option, "--operator-option"))
    query = AddQuery(name, sql_text(sql), plan, sink, above, not no_history, spread, number_of(nodes))
    send(path, query, wait, as_json)


def change(
    path: CheckpointPath, query: QueryName, sql: SqlText, wait: WaitSeconds = None, as_json: AsJson = False
) -> None:
    """Give a running query another window or filter; it keeps its plan, its state and where its results go.

    With a wider window the answers are exact once kept rows reach back far enough; --wait says from when.
    """
    from midstream.step.commands.change_query import ChangeQuery

    send(path, ChangeQuery(query, sql_text(sql)), wait, as_json)


def drop(
    path: CheckpointPath,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A running query; with --stream or --table, one of these.")
    ],
    stream: Annotated[
        bool, typer.Option("--stream", help="Forget a stream that no query reads; not of a job on Spark.")
    ] = False,
    table: Annotated[bool, typer.Option("--table", help="Forget a static table that no query reads.")] = False,
    wait: WaitSeconds = None,
    as_json: AsJson = False,
) -> None:
    """Drop a query of a running job, with the state that only it reads; or forget a stream or table."""
    from midstream.step.commands.drop_query import DropQuery
    from midstream.step.commands.drop_stream import DropStream
    from midstream.step.commands.drop_table import DropTable

    if stream and table:
        raise typer.BadParameter("NAME is either a stream or a table")
    send(path, DropStream(name) if stream else DropTable(name) if table else DropQuery(name), wait, as_json)


def migrate(
    path: CheckpointPath,
    query: QueryName,
    plan: Annotated[
        str, typer.Argument(metavar="PLAN", help="The new plan, such as '((A B) C)'; optional with --operator.")
    ] = "",
    strategy: Annotated[
        str,
        typer.Option(
            "--strategy", metavar="S", help="How kept rows get there; auto: what suits best. See docs/strategies.md."
        ),
    ] = "auto",
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="NAME=VALUE", help="An option of the strategy; may be repeated."),
    ] = None,
    operator: Operator = None,
    operator_option: OperatorOptions = None,
    together: Annotated[bool, typer.Option("--together", help="Move all queries that share the plan.")] = False,
    wait: WaitSeconds = None,
    as_json: AsJson = False,
) -> None:
    """Move a running query to another plan; its answers go on, none lost, none doubled.

    A query that shares its plan with others leaves them, unless all go --together. The plan and the strategy are
    checked against the query before the command is sent.
    """
    from midstream.model.command import declare_operator
    from midstream.step.commands.migrate import Migrate

    if not plan and operator is None:
        raise WrongUse("there is no plan to go to", place="PLAN", remedy="name a plan, an operator, or both")
    above = declare_operator(operator, named_values(operator_option, "--operator-option"))
    send(path, Migrate(query, plan, strategy, named_values(option, "--option"), above, together), wait, as_json)


def spread(
    path: CheckpointPath,
    query: QueryName,
    scheme: Annotated[
        str, typer.Argument(metavar="SCHEME", help="psp_d, hash_hops, ..., auto; or off: back to lanes.")
    ],
    nodes: Nodes = None,
    plan: Annotated[str | None, typer.Option("--plan", help="Probing orders; see docs/spreading.md.")] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", metavar="NAME=VALUE", help="master, segment, copies or count_bound.")
    ] = None,
    relocation: Annotated[
        str | None,
        typer.Option("--relocation", help="aggressive: old rows move at once; passive: they stay until they expire."),
    ] = None,
    wait: WaitSeconds = None,
    as_json: AsJson = False,
) -> None:
    """Spread a running join over nodes, over other nodes, or no longer; no row is lost and no answer changes."""
    from midstream.step.commands.spread import Spread

    way = [] if relocation is None else [f"relocation={relocation}"]
    options = named_values([*(option or ()), *way], "--option")
    send(path, Spread(query, scheme, number_of(nodes), options, plan or ""), wait, as_json)


def command(
    path: CheckpointPath,
    kind: Annotated[
        str, typer.Argument(metavar="KIND", help="The kind of command, as logs name it: rescale, or another package's.")
    ],
    values: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE", help="Its fields; a value is JSON or text.")
    ] = None,
    wait: WaitSeconds = None,
    as_json: AsJson = False,
) -> None:
    """Give any command to a running job, also one that another package defines."""
    from midstream.step.commands.base import command_of

    send(path, command_of({"command": kind, **named_values(values, "NAME=VALUE")}), wait, as_json)


def rescale(
    path: CheckpointPath,
    lanes: Annotated[
        int, typer.Option("--lanes", min=1, max=SLOTS, help="The new number of lanes, the partitions of the state.")
    ],
    wait: WaitSeconds = None,
    as_json: AsJson = False,
) -> None:
    """Spread the state of a running job over another number of lanes; no row is lost and no answer changes."""
    from midstream.step.commands.rescale import Rescale

    send(path, Rescale(lanes), wait, as_json)


def reshare(
    path: CheckpointPath,
    sharing: Annotated[
        str,
        typer.Argument(
            metavar="SCHEME", help="auto, mem_opt, cpu_opt, pull_up, push_down or off; see docs/sharing.md."
        ),
    ],
    wait: WaitSeconds = None,
    as_json: AsJson = False,
) -> None:
    """Have the queries of a running job share rows and work in another way; no answer changes."""
    from midstream.sharing.schemes.base import scheme
    from midstream.step.commands.reshare import Reshare

    scheme(sharing, "SCHEME")
    send(path, Reshare(sharing), wait, as_json)
