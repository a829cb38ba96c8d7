"""The plan that runs a query, as a graph of operators with what each has done; in a migration both plans."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import cleandoc
from typing import Any

from midstream.dashboard.job_reading import JobReading
from midstream.dashboard.view import DashboardView, commandable, mates
from midstream.explain.graph import plan_graph

STEPS_SHOWN = 120
"""So many of the newest steps are in the lines of rows and comparisons."""

_MARKS = {"migration_begun": "migration begins", "migration_ended": "migration ends", "lanes_rescaled": "rescaled"}


def plan(reading: JobReading, options: Mapping[str, str]) -> dict[str, Any]:
    """Show the plan that runs a query, as a graph.

    `query`: its name, None where the job has none, and then nothing else.

    What `commandable` gives; `text`, the SQL without the indentation of its file; `since`, `sees`, `from_step`,
    `exact_from`, `spread`, `lanes`, `sink`, `state_rows`, `state_bytes`, `counters` as in the report. `graph`: see
    `explain.graph`. `migrations`: those under way, as in the report, oldest first; `now`: the greatest event time
    seen. `rates`: by step `steps`, `rows_in`, `rows_out` (of this query), `comparisons`; `marks`: steps `at` which
    something changed, and its `label`.
    """
    query = reading.query(options)
    if query is None:
        return {"query": None}
    graph = plan_graph(reading.manifest, reading.report, query.name, reading.earlier)
    return {
        **commandable(reading, query),
        "text": cleandoc(query.sql),
        "since": query.since,
        "sees": query.sees,
        "from_step": query.from_step,
        "exact_from": query.exact_from,
        "spread": query.spread,
        "lanes": query.lanes,
        "all_lanes": reading.report.lanes,
        "sink": dict(query.sink),
        "state_rows": query.state_rows,
        "state_bytes": query.state_bytes,
        "counters": vars(query.counters),
        "graph": graph,
        "migrations": [one.to_json() for one in query.migrations],
        "now": max((one.greatest for one in reading.report.streams.values() if one.greatest is not None), default=None),
        "rates": _rates(reading, query.name),
        "marks": _marks(reading, {query.name, *mates(reading, query)}),
    }


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


VIEW = DashboardView("plan", "Plan", plan, order=0, options=("query",))
