"""What every view of the dashboard offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from textwrap import dedent
from typing import Any

from midstream.checkpoint.report_values import QueryReport
from midstream.dashboard.job_reading import JobReading
from midstream.migration.strategy_contract import discovered
from midstream.model.codec import encode
from midstream.model.optimization import MODES
from midstream.optimizer.policies.policy_contract import policies
from midstream.proposals.plan_group import settings_of

ViewData = Callable[[JobReading, Mapping[str, str]], dict[str, Any]]
"""From how a job stands and what the page asks for, JSON values."""


ViewVersion = Callable[[JobReading], str]
"""Returns a text that changes when values of a view change by something else than steps and commands."""


def nothing_else(reading: JobReading) -> str:
    """Return an empty text: a view's values change with steps and commands alone."""
    return ""


def times_written(reading: JobReading) -> str:
    """Return a text that changes when a job writes the times of its steps, some seconds after them."""
    return reading.checkpoint.folders.times.version()


@dataclass(frozen=True)
class DashboardView:
    """A view: a file in `dashboard/views` that has one as `VIEW`, and `static/views/NAME.js`, which draws it.

    `data` gives the JSON values that the script gets; `options` names the parameters of the page's address that it
    reads, texts all, and it is given no others: `query` is the chosen query. `title` is shown in the list of views,
    which is in rising `order`. Where the values change without a step or a command, `also` gives what they change with,
    at the cost of a listing or two.
    """

    name: str
    title: str
    data: ViewData
    order: int = 100
    also: ViewVersion = nothing_else
    options: tuple[str, ...] = ()


MATES_SHOWN = 20
"""So many of the queries that share a plan are named."""


def commandable(reading: JobReading, query: QueryReport) -> dict[str, Any]:
    """Describe a query to the page, which offers commands on it.

    `query`: its name; `sql`, `plan`; `mode` and `policy` of the optimizer, `pinned`, its last `decision` and `reason`;
    `settings`: all of the optimizer's that count for the query, as a command has them.

    `proposal`: the plan that waits for an answer, with `strategy` and `gain`, else None. `mates`: how many queries
    share the plan, and the first. `lane_review`: what the optimizer says of the lanes. What can be chosen: `strategies`
    of migrations, `modes` and `policies` of the optimizer.
    """
    optimizer, others = query.optimizer, mates(reading, query)
    return {
        "query": query.name,
        "sql": dedent(query.sql).strip(),
        "plan": query.plan,
        "mode": optimizer.mode,
        "policy": optimizer.policy,
        "pinned": optimizer.pinned,
        "decision": optimizer.decision,
        "reason": optimizer.reason,
        "settings": encode(settings_of(reading.manifest, query.name)),
        "proposal": encode(optimizer.proposal) if optimizer.waits else None,
        "mates": {"count": len(others), "first": others[:MATES_SHOWN]},
        "lane_review": reading.report.lane_review.to_json(),
        "strategies": ["auto", *discovered()],
        "modes": list(MODES),
        "policies": list(policies()),
    }


def mates(reading: JobReading, query: QueryReport) -> list[str]:
    """List the other queries that share a query's plan."""
    if query.chain is None:
        return list(query.nodes_with)
    return [name for name in reading.report.chains[query.chain].queries if name != query.name]
