"""Rows: samples of kept ones and of results, and those that did not enter, how many, when and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from midstream.checkpoint.folders import DEAD_LETTERS, LATE, REJECTED
from midstream.dashboard.job_reading import JobReading
from midstream.dashboard.rejected import EVENT_OF, in_place, kept_sample, results_sample, sample, steps_with
from midstream.dashboard.view import DashboardView

STEPS_SHOWN = 200
"""So many of the newest steps are in the lines of late rows and dead letters."""

KEPT_SHOWN = 6
"""Of so many streams kept rows are shown."""

SAMPLES_SHOWN = 12
"""Of so many streams and kinds there are samples: those whose rows came last."""


def rows(reading: JobReading, options: Mapping[str, str]) -> dict[str, Any]:
    """Show the rows that did not enter, of each stream and query.

    `streams`: of each `name`, `rows`, `late`, `rejected`, `greatest` and `watermark` as in the report, `lateness`.
    `lines`: by step `steps`, how many rows were `late` and `rejected`. `samples`: see `rejected.sample`; `left_out`
    counts the streams and kinds that have rows but no sample here. `kept`: of the first streams `name`, and the newest
    kept rows as `rejected.kept_sample` has them; `results`: those of the chosen query, as `rejected.results_sample`.
    """
    query = reading.query(options)
    declared = reading.manifest.streams
    told = _told(reading)
    return {
        "streams": [
            {**one.to_json(), "lateness": declared[name].lateness} for name, one in reading.report.streams.items()
        ],
        "lines": _lines(reading),
        "samples": [sample(reading, kind, stream) for kind, stream in told[:SAMPLES_SHOWN]],
        "left_out": max(0, len(told) - SAMPLES_SHOWN),
        "kept": [{"name": name, **kept_sample(reading, name)} for name in list(declared)[:KEPT_SHOWN]],
        "results": None if query is None else {"query": query.name, **results_sample(reading, query.name)},
    }


def _told(reading: JobReading) -> list[tuple[str, str]]:
    # The kinds and streams that had such rows last come first.
    counted = {LATE: "late", DEAD_LETTERS: "rejected"}
    found = [
        (kind, name)
        for name, one in reading.report.streams.items()
        for kind, field in counted.items()
        if getattr(one, field)
    ]
    found += [(REJECTED, name) for name, one in reading.report.queries.items() if one.rejected]
    return sorted(found, key=lambda one: (-max(steps_with(reading, *one), default=-1), one))


def _lines(reading: JobReading) -> dict[str, list[int]]:
    steps = [event["step"] for event in reading.events_of("step_done")][-STEPS_SHOWN:]
    counts = {kind: dict.fromkeys(steps, 0) for kind in EVENT_OF}
    for kind, name in EVENT_OF.items():
        for event in reading.events_of(name):
            if event["step"] in counts[kind]:
                counts[kind][event["step"]] += event["rows"]
    rejected = [sum(both) for both in zip(counts[DEAD_LETTERS].values(), counts[REJECTED].values(), strict=True)]
    return {"steps": steps, "late": list(counts[LATE].values()), "rejected": rejected}


def _files(reading: JobReading) -> str:
    # Rows are put in place after the step that has them is done.
    return ",".join(sorted(name for one in _told(reading)[:SAMPLES_SHOWN] for name in in_place(reading, *one)))


VIEW = DashboardView("rows", "Rows", rows, order=30, also=_files, options=("query",))
