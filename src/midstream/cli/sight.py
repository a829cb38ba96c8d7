"""What a query that came or changed in mid-run sees, in words."""

from __future__ import annotations

from typing import Any

from midstream.cli.console import time_text

WORDS = {"all": "all rows", "new": "rows from that step on"}


def sight(sees: str | int, exact_from: int | None) -> str:
    """The rows that a query's answers are made of, and the event time from which on they are exact.

    >>> sight("all", None)
    'all rows'
    >>> sight("new", 1357023600000000)
    'rows from that step on, exact from 2013-01-01 07:00:00'
    >>> sight(1357020000000000, 1357023600000000)
    'rows from 2013-01-01 06:00:00 on, exact from 2013-01-01 07:00:00'
    """
    rows = WORDS[sees] if isinstance(sees, str) else f"rows from {time_text(sees)} on"
    return rows if exact_from is None else f"{rows}, exact from {time_text(exact_from)}"


def in_words(event: dict[str, Any]) -> dict[str, Any]:
    """An event with what its query sees as a user reads it.

    >>> in_words({"query": "q", "sees": "all", "exact_from": None})
    {'query': 'q', 'sees': 'all rows'}
    """
    if "sees" not in event:
        return event
    told = {key: value for key, value in event.items() if key != "exact_from"}
    return {**told, "sees": sight(event["sees"], event["exact_from"])}
