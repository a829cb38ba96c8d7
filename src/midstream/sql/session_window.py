"""Sessions that rows are grouped by: `SESSION(ts, gap)` as Flink writes them, `session_window(ts, gap)` as Spark does.

A session is rows of equal groups of which each follows the one before after no more than the gap; a gap that is reached
exactly joins, as in Spark and Flink. It ends the gap after its last row, and is answered at that time, once the
watermark has passed it.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from midstream.expr.expression import TIME_COLUMN
from midstream.logical.query import GROUPED, START
from midstream.model.window import Window


@dataclass(frozen=True)
class SessionWindow:
    """Sessions by `gap` microseconds."""

    gap: int
    node: exp.Expr

    def window(self) -> Window:
        """The window of the source: a row that has come is the operator's, who keeps it until its session is over."""
        return Window("range", 0)

    def boundary(self, name: str) -> exp.Expr:
        """The `start` or `end` of a result, of which the time is the session's end."""
        return exp.column(TIME_COLUMN) if name == "end" else exp.column(START, GROUPED)
