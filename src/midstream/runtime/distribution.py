"""How rows must lie over lanes for an operator to meet all it must, and the stages of a step between which rows travel.

A lane is a partition: rows that never meet may lie in different ones. An operator says which of its input rows must lie
together (`Distribution`); a step is a list of stages, each spread by one lane key (`Stage`). Today every step has one
stage, because a lane key serves every operator of every plan; a join without a common key runs in one lane. A ring has
more: its operators will say that rows travel between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from midstream.expr.expression import Expression

Meeting = tuple[tuple[Expression, Expression], ...]
"""What two rows that meet are equal in: pairs of an expression of the one and an expression of the other."""


@dataclass(frozen=True)
class Distribution:
    """Which input rows of an operator must lie in one lane.

    For each of the `meetings`, rows that are equal in all of its pairs must lie together; to spread both by any one
    pair does that. `together`: every row must lie with every other.
    """

    meetings: tuple[Meeting, ...] = ()
    together: bool = False

    def allows(self, lane_key: Mapping[str, Expression] | None) -> bool:
        """Return whether rows spread by this key (by source; None: all in one lane) lie as they must.

        >>> Distribution(together=True).allows({}), Distribution(together=True).allows(None)
        (False, True)
        """
        if lane_key is None:
            return True
        if self.together:
            return False
        texts = {expression.text() for expression in lane_key.values()}
        return all(any({a.text(), b.text()} <= texts for a, b in meeting) for meeting in self.meetings)


@dataclass(frozen=True)
class Stage:
    """A part of a step that every lane does by itself: rows are spread by `lane_key` before it begins.

    `lane_key` has for each stream what its rows are spread by; None: all rows to one lane.
    """

    number: int
    lane_key: Mapping[str, Expression] | None
