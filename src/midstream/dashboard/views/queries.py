"""All queries of a job, to be searched: which costs most, which is being moved, which waits for an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from midstream.checkpoint.report_values import QueryReport
from midstream.dashboard.job_reading import JobReading, one_of
from midstream.dashboard.view import DashboardView

QUERIES_SHOWN = 100
"""So many of those found are shown."""

TEXT_SHOWN = 160
"""So many characters of a query's text."""

ORDERS: Mapping[str, Callable[[QueryReport], Any]] = {
    "name": lambda query: 0,
    "comparisons": lambda query: -query.counters.comparisons,
    "rows out": lambda query: -query.counters.rows_out,
    "rows held": lambda query: -query.state_rows,
    "to decide": lambda query: (not query.optimizer.waits, not query.migrations),
}
"""What the queries can be ordered by, the first first; those that are alike in it by name."""


def queries(reading: JobReading, options: Mapping[str, str]) -> dict[str, Any]:
    """List the queries of a job that a search finds.

    `search` and `order` as given; `orders`: what can be. `all` and `found` count the queries, and those whose name,
    text or plan has all words of the search, in any case. `queries`: the first of these: `name`, `sql` (its beginning),
    `plan`, `chain`, `spread`, `mode`, `rows_out`, `comparisons`, `state_rows`, `since`, `migrating`, `waits` (for an
    answer), `parts` (the names of queries that run as parts of it, which are not listed themselves).
    """
    order = one_of(options, "order", tuple(ORDERS))
    search = options.get("search", "")
    words = search.lower().split()
    every = reading.report.asked
    found = [query for query in every if _has(query, words)]
    ranked = sorted(found, key=lambda query: (ORDERS[order](query), query.name))
    return {
        "search": search,
        "order": order,
        "orders": list(ORDERS),
        "all": len(every),
        "found": len(found),
        "queries": [
            _row(query) | {"parts": [part.name for part in reading.report.parts(query.name)]}
            for query in ranked[:QUERIES_SHOWN]
        ],
    }


def _has(query: QueryReport, words: list[str]) -> bool:
    text = f"{query.name}\n{query.sql}\n{query.plan}".lower() if words else ""
    return all(word in text for word in words)


def _row(query: QueryReport) -> dict[str, Any]:
    return {
        "name": query.name,
        "sql": query.sql if len(query.sql) <= TEXT_SHOWN else f"{query.sql[:TEXT_SHOWN]}…",
        "plan": query.plan,
        "chain": query.chain,
        "spread": query.spread,
        "mode": "pinned" if query.optimizer.pinned else query.optimizer.mode,
        "rows_out": query.counters.rows_out,
        "comparisons": query.counters.comparisons,
        "state_rows": query.state_rows,
        "since": query.since,
        "migrating": bool(query.migrations),
        "waits": query.optimizer.waits,
    }


VIEW = DashboardView("queries", "Queries", queries, order=60, options=("order", "search"))
