"""`midstream optimize`, `plans`: what the optimizer may do, and what it finds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from midstream.cli.arguments import AsJson, CheckpointPath, CommandGroup, QueryName, WaitSeconds, named_values, placed
from midstream.cli.exit_codes import WrongUse
from midstream.cli.output import print_json, print_table, say
from midstream.cli.send import send
from midstream.model.words import counted, size_text

if TYPE_CHECKING:
    from midstream.checkpoint.plans_report import PlansReport
    from midstream.pipeline.opened import OpenCheckpoint


@placed(CommandGroup.CHANGE, "midstream optimize ckpt pairs --mode auto", "midstream optimize ckpt --mode ask")
def optimize(
    path: CheckpointPath,
    query: Annotated[
        str,
        typer.Argument(metavar="QUERY", help="One query. Default: all queries without settings of their own."),
    ] = "",
    mode: Annotated[
        str | None,
        typer.Option(
            "--mode",
            metavar="M",
            help="off, suggest (report better plans), ask (wait for your approval), or auto (change plans). "
            "Default: the job's mode.",
        ),
    ] = None,
    policy: Annotated[
        str,
        typer.Option(
            "--policy", metavar="P", help="The policy that decides when to change a plan; see docs/optimizer.md."
        ),
    ] = "adaptive",
    objective: Annotated[
        str, typer.Option("--objective", metavar="O", help="The cost to minimise: work, latency or memory.")
    ] = "work",
    weight: Annotated[
        list[str] | None,
        typer.Option(
            "--weight",
            metavar="NAME=NUMBER",
            help="The weight of a cost, such as memory=0.01, in a sum of costs to minimise; may be repeated.",
        ),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", metavar="PLAN|STRATEGY", help="Allow only this plan or strategy; may be repeated."),
    ] = None,
    review: Annotated[
        str, typer.Option("--review", metavar="DURATION", help="The time between two reviews of a plan, in event time.")
    ] = "10 seconds",
    effort: Annotated[
        float,
        typer.Option("--effort", metavar="SHARE", help="The budget for reviews, as a share of the job's total work."),
    ] = 0.03,
    horizon: Annotated[
        str | None,
        typer.Option(
            "--horizon", metavar="DURATION", help="The time over which to add up a plan's gain, in event time."
        ),
    ] = None,
    quiet: Annotated[
        list[str] | None,
        typer.Option(
            "--quiet",
            metavar="HH:MM-HH:MM",
            help="Hours in UTC during which the optimizer changes nothing; may be repeated.",
        ),
    ] = None,
    lanes: Annotated[
        str | None,
        typer.Option("--lanes", metavar="M", help="The mode for the number of lanes. Default: the mode for plans."),
    ] = None,
    calibration: Annotated[
        Path | None,
        typer.Option("--calibration", metavar="FILE", help="A file of costs that `midstream calibrate` wrote."),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="NAME=VALUE", help="An option of the policy; may be repeated."),
    ] = None,
    wait: WaitSeconds = None,
    as_json: AsJson = False,
) -> None:
    """Set the mode, the policy and the limits of the optimizer for one query or for all queries."""
    from midstream.commands.optimize import Optimize
    from midstream.pipeline.calibration_file import unit_costs
    from midstream.proposals.settings import settings_of_values

    given = {
        "policy": policy,
        **({} if mode is None else {"mode": mode}),
        "objective": objective,
        "weights": named_values(weight, "--weight"),
        "allow": tuple(allow or ()),
        "review": review,
        "effort": effort,
        "horizon": horizon,
        "quiet": tuple(quiet or ()),
        "lanes": lanes,
        "units": {} if calibration is None else unit_costs(calibration, "--calibration"),
        "options": named_values(option, "--option"),
    }
    settings = settings_of_values(given, f"query {query}" if query else "optimize")
    send(path, Optimize(query, settings, mode is None), wait, as_json)


@placed(CommandGroup.LOOK, "midstream plans ckpt pairs")
def plans(
    path: CheckpointPath,
    query: QueryName,
    chart: Annotated[
        Path | None,
        typer.Option(
            "--chart",
            metavar="FILE",
            help="Draw the policy's chart of the best plans, and the rates of past steps, into this file.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a query's possible plans, the cost of each plan, the reasons for or against each plan, and the cost of a
    change of plan.

    The values come from the job's newest step; the command changes nothing.
    """
    from midstream.pipeline.opened import OpenCheckpoint

    checkpoint = OpenCheckpoint.of(path)
    report = checkpoint.plans(query)
    if chart is not None:
        _draw(checkpoint, report, chart)
    if as_json:
        print_json(report.to_json())
    else:
        _show(report)


def _draw(checkpoint: OpenCheckpoint, report: PlansReport, file: Path) -> None:
    from midstream.lab.chart_picture import chart_picture
    from midstream.optimizer.charts.chart_policy import charts_of

    kept = checkpoint.manifest().optimizations.get(report.query)
    # What another policy has written may look like a chart, and says nothing of what runs now.
    charts = charts_of({} if kept is None or kept.policy != report.settings.policy else kept.memory)
    if not charts:
        raise WrongUse(
            f"query {report.query} has no chart",
            place=report.query,
            remedy="choose a policy that makes charts: --policy lambda_chart, or sel_lambda_chart",
        )
    chart_picture(charts, f"Plans of {report.query}", file)


# Plans that are not trees of joins are written in words of the papers.
NOTATIONS = {
    "eddy": "eddy(...): one operator joins all streams, and chooses the order of joins for each row",
    "[": "[A: B C | ...]: one operator joins all streams; a new row of A looks for rows of B, then of C",
}


def _show(report: PlansReport) -> None:
    settings, shared = report.settings, f" (with {', '.join(report.queries)})" if len(report.queries) > 1 else ""
    pinned = ", pinned" if report.pinned else ""
    say(f"query {report.query}{shared} runs by {report.plan}: mode {settings.mode}, policy {settings.policy}{pinned}")
    if report.lanes is not None and report.lanes.decision:
        say(f"{counted(report.lanes.lanes, 'lane')}, last review: {report.lanes.decision}: {report.lanes.reason}")
    if report.why_none:
        say(f"nothing to choose: {report.why_none}")
        return
    cost, unit = ("work ms/s", 1e6) if settings.counts_time_alone else ("cost", 1.0)
    print_table(
        "plans",
        ("plan", cost, "between", "state", "against running", "why"),
        [
            (
                one["plan"],
                one["cost"] / unit,
                "" if one["low"] == one["high"] else f"{one['low'] / unit:.3g} and {one['high'] / unit:.3g}",
                size_text(one["memory"]),
                "" if one["plan"] == report.plan else f"{one['share'] - 1:+.1%}",
                one["why"].removeprefix(f"{one['plan']} "),
            )
            for one in report.plans
        ],
    )
    for begin, meaning in NOTATIONS.items():
        if any(one["plan"].startswith(begin) for one in report.plans):
            say(meaning)
    if report.switch:
        switch, of_work = report.switch, " ms of work" if settings.counts_time_alone else ""
        say(
            f"moving to {switch['plan']} by strategy {switch['strategy']} would cost {switch['work'] / unit:.4g}"
            f"{of_work} and {switch.get('silence', 0.0):.3g} s without results"
        )
    say(f"asked now: {report.would}")
    if report.last:
        say(f"last review: {report.last}")
    if report.proposal is not None:
        proposal = report.proposal
        say(f"proposed: {proposal.plan} by {proposal.strategy}, saves {proposal.gain:.0%}: {proposal.state}")
