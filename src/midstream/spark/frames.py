"""DataFrames of Spark as rows that the driver holds."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from midstream.model.errors import InputError


def rows_of_frame(rows: Any, place: str) -> Any:
    """Collect a DataFrame as an Arrow table; return anything else as it is. Raises InputError for one that streams."""
    if not isinstance(rows, DataFrame):
        return rows
    if rows.isStreaming:
        raise InputError(
            "a streaming DataFrame has no end, and a static table is read whole",
            place=place,
            remedy="declare it as a stream, or read it by spark.read",
        )
    return rows.toArrow()
