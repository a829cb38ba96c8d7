"""What things are called in a manifest."""

from __future__ import annotations


def operator_name(lane: str, operator: str) -> str:
    """The name of an operator's counters in a manifest: equal operators of two lane groups do separate work."""
    return f"{lane.rpartition('.')[0]} {operator}"


def operator_id(name: str) -> str:
    """The operator of a name that `operator_name` made.

    >>> operator_id(operator_name("single.0", "join A B"))
    'join A B'
    """
    return name.partition(" ")[2]
