"""The words in which users write windows to group by, and their bounds."""

from __future__ import annotations

from sqlglot import exp

from midstream.expr.expression import TIME_COLUMN

WINDOW_CALLS = {"TUMBLE": 3, "HOP": 4, "CUMULATE": 4, "WINDOW": 4, "SESSION": 2, "SESSION_WINDOW": 2}
"""By name the most arguments: the timestamp and durations, the last of which may be how far windows are moved. HOP
gives its slide first, CUMULATE its step, Spark's `window` its size.
"""

FIELDS = ("WINDOW", "SESSION_WINDOW")
"""The windows of Spark, whose bounds are fields."""

_BOUNDS = ("start", "end")


def is_window_call(node: exp.Expr) -> bool:
    """Whether an expression of GROUP BY is a window.

    >>> is_window_call(exp.Anonymous(this="TUMBLE")), is_window_call(exp.column("k"))
    (True, False)
    """
    return isinstance(node, exp.Anonymous) and node.name.upper() in WINDOW_CALLS


def is_window_function(node: exp.Expr) -> bool:
    """Whether an expression is a window, or the bound of one that has the same arguments.

    >>> is_window_function(exp.Anonymous(this="TUMBLE_END")), is_window_function(exp.Anonymous(this="F"))
    (True, False)
    """
    base, _, bound = node.name.lower().rpartition("_")
    bounding = isinstance(node, exp.Anonymous) and base in ("tumble", "hop", "cumulate", "session") and bound in _BOUNDS
    return bounding or is_window_call(node)


def is_window_bound(node: exp.Expr) -> bool:
    """Whether an item of the select list says which window it is: `window_end`, `window.end`, `TUMBLE_END(...)`, `_ts`.

    >>> is_window_bound(exp.column("window_end")), is_window_bound(exp.column("k"))
    (True, False)
    """
    name = node.name.lower()
    if isinstance(node, exp.Column):
        return name in ("window_start", "window_end", TIME_COLUMN) or (node.table.upper() in FIELDS and name in _BOUNDS)
    return is_window_function(node) and not is_window_call(node)
