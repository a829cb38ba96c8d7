"""The plan that runs a query, as a graph of operators with what each has done; in a migration both plans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from midstream.dashboard.reading import JobReading
from midstream.dashboard.view import DashboardView
from midstream.explain import explain


def plan(reading: JobReading, options: Mapping[str, str]) -> dict[str, Any]:
    """`query` (None where the job has none), and what `explain` gives of it as `explained`."""
    query = reading.query(options)
    if query is None:
        return {"query": None}
    return {"query": query.name, "explained": explain(reading.manifest, query.name, analyze=True, format="json")}


VIEW = DashboardView("plan", "Plan", plan, order=0)
