"""The plan that runs a query, as a graph of operators with what each has done; in a migration both plans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from midstream.checkpoint.report_values import QueryReport
from midstream.dashboard.reading import JobReading
from midstream.dashboard.view import DashboardView
from midstream.explain.graph import plan_graph
from midstream.migration.discovery import discovered
from midstream.model.codec import encode

STEPS_SHOWN = 120
"""So many of the newest steps are in the lines of rows and comparisons."""

MATES_SHOWN = 20
"""So many of the queries that share a plan are named."""

_MARKS = {"migration_begun": "migration begins", "migration_ended": "migration ends", "lanes_rescaled": "rescaled"}


def plan(reading: JobReading, options: Mapping[str, str]) -> dict[str, Any]:
    """`query`: its name, None where the job has none, and then nothing else.

    `sql`, `plan`, `since`, `sees`, `exact_from`, `spread`, `lanes`, `mode` of the optimizer, `pinned`, `policy`,
    `sink`, `state_rows`, `state_bytes`, `counters` as in the report; `mates`: how many share the plan, and the first.
    `proposal`: the plan that waits for an answer, with `strategy` and `gain`. `graph`: see `explain.graph`.
    `migrations`: those under way, as in the report, oldest first; `now`: the greatest event time seen. `rates`: by step
    `steps`, `rows_in`, `rows_out` (of this query), `comparisons`; `marks`: steps `at` which something changed, and its
    `label`. `strategies`: what a migration can be carried out by. `lane_review`: how it stands with the lanes.
    """
    query = reading.query(options)
    if query is None:
        return {"query": None}
    graph = plan_graph(reading.manifest, reading.report, query.name, reading.earlier)
    mates = _mates(reading, query)
    optimizer = query.optimizer
    return {
        "query": query.name,
        "sql": query.sql,
        "plan": query.plan,
        "since": query.since,
        "sees": query.sees,
        "exact_from": query.exact_from,
        "spread": query.spread,
        "lanes": query.lanes,
        "all_lanes": reading.report.lanes,
        "mode": optimizer.mode,
        "policy": optimizer.policy,
        "pinned": optimizer.pinned,
        "decision": optimizer.decision,
        "reason": optimizer.reason,
        "sink": dict(query.sink),
        "state_rows": query.state_rows,
        "state_bytes": query.state_bytes,
        "counters": vars(query.counters),
        "mates": {"count": len(mates), "first": mates[:MATES_SHOWN]},
        "proposal": encode(optimizer.proposal) if optimizer.waits else None,
        "graph": graph,
        "migrations": [one.to_json() for one in query.migrations],
        "now": max((one.greatest for one in reading.report.streams.values() if one.greatest is not None), default=None),
        "rates": _rates(reading, query.name),
        "marks": _marks(reading, {query.name, *mates}),
        "strategies": ["auto", *discovered()],
        "lane_review": reading.report.lane_review.to_json(),
    }


def _mates(reading: JobReading, query: QueryReport) -> list[str]:
    if query.chain is None:
        return list(query.nodes_with)
    return [name for name in reading.report.chains[query.chain].queries if name != query.name]


def _rates(reading: JobReading, query: str) -> dict[str, list[int]]:
    done = reading.events_of("step_done")[-STEPS_SHOWN:]
    return {
        "steps": [event["step"] for event in done],
        "rows_in": [sum(event["rows_in"].values()) for event in done],
        "rows_out": [event["rows_out"].get(query, 0) for event in done],
        "comparisons": [event["comparisons"] for event in done],
    }


def _marks(reading: JobReading, queries: set[str]) -> list[dict[str, Any]]:
    found = (event for event in reading.events_of(*_MARKS) if event.get("query") in {*queries, None})
    return [{"at": event["step"], "label": _MARKS[event["event"]]} for event in found]


VIEW = DashboardView("plan", "Plan", plan, order=0)
