"""What steps take by the clock, phase by phase, against the trigger; what waits at the sources; rows a second."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from midstream.dashboard.job_reading import JobReading
from midstream.dashboard.view import DashboardView, times_written
from midstream.model.step_time import StepTime, time_summary

STEPS_SHOWN = 200
"""So many of the newest steps are shown."""


def steps(reading: JobReading, options: Mapping[str, str]) -> dict[str, Any]:
    """Show what steps take by the clock.

    `times`, oldest first, of the steps whose times are known: `step`, `ended`, `seconds`, `phases`, `interval`, `rows`,
    `results`, `late`, `rejected`, `backlog` (what waited at all sources), `behind`, `watermark_lag`, and
    `rows_per_second` and `results_per_second` of the step's own time. `phases`: their names, in order. `summary`: as in
    the status. `work`, by step, of all steps that events are remembered of: `steps`, `rows_in`, `rows_out`,
    `comparisons`, `state_rows`.
    """
    found = reading.times(STEPS_SHOWN)
    done = reading.events_of("step_done")[-STEPS_SHOWN:]
    return {
        "times": [time_values(one) for one in found],
        "phases": list(dict.fromkeys(name for one in found for name in one.phases)),
        "summary": time_summary(found),
        "work": {
            "steps": [event["step"] for event in done],
            "rows_in": [sum(event["rows_in"].values()) for event in done],
            "rows_out": [sum(event["rows_out"].values()) for event in done],
            "comparisons": [event["comparisons"] for event in done],
            "state_rows": [event["state_rows"] for event in done],
        },
    }


def time_values(one: StepTime) -> dict[str, Any]:
    """Return a step's times as JSON values, with the rows and results a second of the step's own time."""
    rows = sum(one.rows.values())
    return {
        "step": one.step,
        "ended": one.ended,
        "seconds": one.seconds,
        "phases": dict(one.phases),
        "interval": one.interval,
        "rows": rows,
        "results": one.results,
        "late": one.late,
        "rejected": one.rejected,
        "backlog": sum(one.backlog.values()) if one.backlog else None,
        "behind": one.behind,
        "watermark_lag": one.watermark_lag,
        "rows_per_second": rows / one.seconds if one.seconds > 0 else None,
        "results_per_second": one.results / one.seconds if one.seconds > 0 else None,
    }


VIEW = DashboardView("steps", "Steps", steps, order=20, also=times_written)
