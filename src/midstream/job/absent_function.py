"""A function that takes a query's results, and that the program which takes the job up does not have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from midstream.model.errors import SinkError
from midstream.sinks import FunctionSink


def not_here(query: str, value: Mapping[str, Any]) -> SinkError:
    """Make the error of a query whose manifest entry names `value` as its sink."""
    return SinkError(
        f"the results of query {query!r} go to the function {value['function']}, which is not here",
        place=f"query {query}",
        remedy="name the function as the query's sink when the job is started",
    )


def refusing(query: str, value: Mapping[str, Any]) -> FunctionSink:
    """Make a sink that raises that error for anything that is committed."""

    def refuse(*_: object) -> None:
        raise not_here(query, value)

    return FunctionSink(refuse)
