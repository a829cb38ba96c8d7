"""Show a job in short: the time and rows of its steps, its streams, its queries and its errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from midstream.checkpoint.report_values import QueryReport
from midstream.dashboard.job_reading import JobReading
from midstream.dashboard.view import DashboardView, times_written
from midstream.dashboard.views.steps import time_values
from midstream.explain.event_sentence import event_sentence
from midstream.model.codec import decode
from midstream.model.events import Event
from midstream.model.step_time import time_summary

STEPS_SHOWN, QUERIES_SHOWN, ERRORS_SHOWN = 120, 40, 12
"""So many are shown: the newest steps, the queries that compare most, the newest events that report a fault."""

FAULTS = (
    "command_refused", "review_failed", "step_delayed", "times_doubtful", "rows_late", "rows_rejected",
    "results_rejected", "cross_join_begun",
)  # fmt: skip
"""The kinds of events that an operator should read."""

REPEATED = ("rows_late", "rows_rejected", "results_rejected")
"""The kinds of events that a stream or a query may report in every step."""


def overview(reading: JobReading, options: Mapping[str, str]) -> dict[str, Any]:
    """Show how a job stands.

    `streams`: of each `name`, `rows`, `late`, `rejected`, `greatest`, `watermark`, `holds_back` and `since` as in the
    report. `queries`, those that compare most first: `name`, `plan`, `mode`, `says` (what the optimizer last said),
    `waits` (a plan is proposed), `migrating`, `rows_out`, `rejected`, `state_rows`; `queries_left_out`. `refused`: the
    `name` and the `reason` of each. `faults`, newest first: the `step` and `text` of events that report one; `before`
    counts older reports on the same stream or query, the oldest from step `since`.
    `times`: of the newest steps, as in the view of steps; `summary`: as in the status.
    """
    report = reading.report
    asked = sorted(report.asked, key=lambda query: (not query.optimizer.waits, -query.counters.comparisons, query.name))
    found = reading.times(STEPS_SHOWN)
    return {
        "streams": [one.to_json() for one in report.streams.values()],
        "queries": [_query(one) for one in asked[:QUERIES_SHOWN]],
        "queries_left_out": max(0, len(asked) - QUERIES_SHOWN),
        "refused": [{"name": one.name, "reason": one.reason} for one in report.refused.values()],
        "faults": _faults([decode(Event, one) for one in reading.events_of(*FAULTS)]),
        "times": [time_values(one) for one in found],
        "summary": time_summary(found),
    }


def _faults(events: Sequence[Event]) -> list[dict[str, Any]]:
    # A stream that is late again and again takes one line, so that it hides no other fault.
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for event in reversed(events):
        subject = getattr(event, "stream", None) or getattr(event, "query", None)
        key = (event.kind, str(subject if event.kind in REPEATED else len(found)))
        if key in found:
            found[key] |= {"before": found[key]["before"] + 1, "since": event.step}
        else:
            found[key] = {"step": event.step, "text": event_sentence(event), "before": 0, "since": event.step}
    return list(found.values())[:ERRORS_SHOWN]


def _query(query: QueryReport) -> dict[str, Any]:
    optimizer = query.optimizer
    return {
        "name": query.name,
        "plan": query.plan,
        "mode": "pinned" if optimizer.pinned else optimizer.mode,
        "says": f"{optimizer.decision}: {optimizer.reason}" if optimizer.decision else "",
        "waits": optimizer.waits,
        "migrating": bool(query.migrations),
        "rows_out": query.counters.rows_out,
        "rejected": query.rejected,
        "state_rows": query.state_rows,
    }


VIEW = DashboardView("overview", "Overview", overview, order=-10, also=times_written)
