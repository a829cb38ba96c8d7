"""How far back new rows look: filters prune probes, not only results (Wang §7.4.1).

In the dissertation's chain a row goes on to the next slice only if it passes the filter of a query that reads there. In
sets: a new row meets the chunks that are young enough for some query whose filters it passes, and no older ones.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from midstream.operators.need import Need, column
from midstream.state.lane import Lane
from midstream.state.lineage import LINEAGE
from midstream.state.parts import Part
from midstream.state.specs import RowsSpec


class Reaching:
    """The new rows of one side of a join, by the widest window among the queries that want them."""

    def __init__(self, lane: Lane, rows: Mapping[str, RowsSpec], need: Need, part: Part) -> None:
        self.part, self._chosen = part, dict[int, Part]()
        label, *others = part.combinations.labels
        steps = () if others or not len(part) else need.steps(label)
        self._reaches = sorted({reach for _, reach in steps})
        if len(self._reaches) > 1:
            words = column(lane, rows[label], LINEAGE, part.combinations)
            self._reach = np.zeros(len(part), np.int64)
            for bit, reach in steps:
                self._reach = np.maximum(self._reach, np.where((words >> bit) & 1 != 0, reach, 0))

    def back_to(self, age: int) -> Part:
        """The rows that some query joins with rows of this age, which is within the widest window."""
        if len(self._reaches) < 2 or age <= self._reaches[0]:
            return self.part
        return self._at(next(reach for reach in self._reaches if reach >= age))

    def _at(self, reach: int) -> Part:
        if reach not in self._chosen:
            at = np.flatnonzero(self._reach >= reach)
            codes = None if self.part.codes is None else self.part.codes[at]
            self._chosen[reach] = Part(codes, self.part.combinations.take(at))
        return self._chosen[reach]
