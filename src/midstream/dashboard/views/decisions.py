"""What the optimizer decided about a query and why: reviews, ranked plans, foreseen and real cost."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from midstream.dashboard.job_reading import JobReading
from midstream.dashboard.view import DashboardView, commandable
from midstream.model.errors import QueryError
from midstream.optimizer.charts.chart import ChartPanel, axis_label, panels
from midstream.optimizer.charts.chart_policy import charts_of
from midstream.proposals.plan_group import PlanGroup, plan_group

JsonObject = dict[str, Any]

REVIEWS_SHOWN = 200
"""So many of the newest reviews are in the time line."""

PATH_SHOWN = 60
"""Over so many of the newest reviews the path of the streams is drawn."""

OTHERS_SHOWN = 200
"""So many of the newest other events are in the time line."""

_OTHERS = (
    "proposal_closed", "migration_begun", "migration_ended", "plan_pinned", "optimizer_set", "query_added",
    "query_changed", "review_failed", "lanes_reviewed", "lanes_proposal_closed", "lanes_rescaled", "command_refused",
)  # fmt: skip


def decisions(reading: JobReading, options: Mapping[str, str]) -> JsonObject:
    """Show what the optimizer decided about a query and why.

    `query`: its name, None where the job has none, and then nothing else. What `commandable` gives, and:

    `timed`: whether costs are nanoseconds of work for a second of event time, or what the objective's weights make of
    them. `reviews`, oldest first: `step`, `decision`, `reason`, `policy`, `plan`, `chosen`, `foreseen`, `real`, and the
    cheapest plan as `best`, with `best_cost`. `shown`: all of the review in the step `review`, else of the newest, as
    its event has it; None where there was none. `others`: what else happened to the query, and to the lanes, as events.
    `panels`: the charts of the policy over two axes each: `across` and `up` (`label`, `low`, `high`), `k`, `plans`,
    `cells` (rows upwards, with the numbers of the plans), `rounds` (`at`, `count`), `here`, and `path`, the points of
    the streams at the newest reviews where they are known.
    """
    query = reading.query(options)
    if query is None:
        return {"query": None}
    group = plan_group(reading.manifest, query.name)
    own = [event for event in reading.events_of("plan_reviewed") if query.name in event["queries"]]
    found = own[-REVIEWS_SHOWN:]
    others = [event for event in reading.events_of(*_OTHERS) if _concerns(event, {query.name, *group.queries})]
    return {
        **commandable(reading, query),
        "timed": group.settings.counts_time_alone,
        "left_out": len(own) - len(found),
        "reviews": [_review(event) for event in found],
        "shown": _shown(found, options),
        "others": others[-OTHERS_SHOWN:],
        "panels": [_panel(one, found) for one in panels(_charts(group))],
    }


def _concerns(event: JsonObject, queries: set[str]) -> bool:
    # A review of the lanes that keeps them is no change. The event may name no query, and so may the command that it
    # refuses.
    if event["event"] == "lanes_reviewed" and event["decision"] == "stay":
        return False
    named = event.get("command", event).get("query", "")
    return not named or named in queries


def _review(event: JsonObject) -> JsonObject:
    best: JsonObject = min(event.get("plans", ()), key=lambda one: one["cost"], default={})
    kept = {name: event.get(name, "") for name in ("step", "decision", "reason", "policy", "plan", "chosen")}
    known = event.get("figures", {})
    costs = {"foreseen": known.get("foreseen"), "real": known.get("real")}
    return {**kept, **costs, "best": best.get("plan"), "best_cost": best.get("cost")}


def _shown(found: list[JsonObject], options: Mapping[str, str]) -> JsonObject | None:
    text = options.get("review", "")
    if text and not text.isdecimal():
        raise QueryError(f"{text!r} is not a step", place="review", remedy="use the number of a step with a review")
    # Where the step had no review, the newest one before it is shown.
    upto = [event for event in found if not text or event["step"] <= int(text)]
    return upto[-1] if upto else found[0] if found else None


def _charts(group: PlanGroup) -> Any:
    # What another policy has written may look like a chart, and says nothing of what runs now.
    return charts_of(group.kept.memory) if group.kept.policy == group.settings.policy else ()


def _panel(panel: ChartPanel, reviews: list[JsonObject]) -> JsonObject:
    across, up = panel.axes
    return {
        "across": {"label": axis_label(across), "low": across.low, "high": across.high},
        "up": {"label": axis_label(up), "low": up.low, "high": up.high},
        "k": panel.chart.k,
        "plans": list(panel.chart.plans),
        "cells": panel.plans().T.tolist(),
        "rounds": [{"at": list(at), "count": count} for at, count in sorted(panel.rounds().items())],
        "here": panel.here(),
        "path": _path(panel, reviews[-PATH_SHOWN:]),
        "moves": panel.course.moves,
        "switches": panel.course.switches,
        "fidelity": panel.course.fidelity if panel.course.judged else None,
    }


def _path(panel: ChartPanel, reviews: list[JsonObject]) -> list[list[float]]:
    # Oldest first, each point where it has changed; none where an axis is not a rate.
    if any(axis.dimension != "rate" for axis in panel.axes):
        return []
    sources = [event.get("figures", {}).get("sources", {}) for event in reviews]
    points = [
        [own[axis.source]["rate"] for axis in panel.axes]
        for own in sources
        if all(axis.source in own for axis in panel.axes)
    ]
    return [*points[:1], *(point for before, point in pairwise(points) if point != before)]


VIEW = DashboardView("decisions", "Decisions", decisions, order=10, options=("query", "review"))
