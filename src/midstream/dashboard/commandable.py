"""What the page has to know of a query to offer commands on it."""

from __future__ import annotations

from typing import Any

from midstream.checkpoint.report_values import QueryReport
from midstream.dashboard.reading import JobReading
from midstream.migration.discovery import discovered
from midstream.model.codec import encode
from midstream.model.optimization import MODES
from midstream.optimizer.discovery import policies
from midstream.step.reviewing.group_settings import settings_of

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
        "sql": query.sql,
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
