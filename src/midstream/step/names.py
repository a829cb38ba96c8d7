"""What things are called in a manifest."""

from __future__ import annotations


def operator_name(lane: str, operator: str) -> str:
    """The name of an operator's counters in a manifest: equal operators of two lane groups do separate work."""
    return f"{lane.rpartition('.')[0]} {operator}"
