"""SQL that is tried: over the rows that the job keeps, or as a query that the job might be given."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import cleandoc
from typing import Any

from midstream.dashboard.job_reading import JobReading
from midstream.dashboard.trial import kept_tables
from midstream.dashboard.view import DashboardView

COLUMNS_SHOWN = 40
"""So many columns of a stream are named."""


def trial(reading: JobReading, options: Mapping[str, str]) -> dict[str, Any]:
    """Show what SQL can be tried over.

    `tables`: of each stream its `name`, the `columns` that are kept, and how many `rows` (0 where none are). `sql`:
    the text of the chosen query.
    """
    kept, query = kept_tables(reading.manifest), reading.query(options)
    return {
        "tables": [
            {
                "name": name,
                "columns": list(kept[name].columns if name in kept else stream.columns.names)[:COLUMNS_SHOWN],
                "rows": kept[name].rows if name in kept else 0,
            }
            for name, stream in reading.manifest.streams.items()
        ],
        "sql": "" if query is None else cleandoc(query.sql),
    }


VIEW = DashboardView("trial", "Try a query", trial, order=70, options=("query",))
