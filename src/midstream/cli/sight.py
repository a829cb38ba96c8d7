"""Events in words, where they say what a query that came or changed in mid-run sees."""

from __future__ import annotations

from typing import Any

from midstream.model.words import sight


def in_words(event: dict[str, Any]) -> dict[str, Any]:
    """An event with what its query sees as a user reads it.

    >>> in_words({"query": "q", "sees": "all", "exact_from": None})
    {'query': 'q', 'sees': 'all rows'}
    """
    if "sees" not in event:
        return event
    told = {key: value for key, value in event.items() if key != "exact_from"}
    return {**told, "sees": sight(event["sees"], event["exact_from"])}
