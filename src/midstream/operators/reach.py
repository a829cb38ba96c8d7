"""How far back new rows look: filters prune probes, not only results (Wang §7.4.1).

In the dissertation's chain a row goes on to the next slice only if it passes the filter of a query that reads there. In
sets: a new row meets the chunks that are young enough for some query whose filters it passes, and no older ones.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from midstream.operators.need import Need, column
from midstream.runtime.lane import Lane
from midstream.state.lineage import LINEAGE
from midstream.state.sorted_run import SortedRun
from midstream.state.specs import RowsSpec


class Reaching:
    """The new rows of one side of a join, by the widest window among the queries that want them."""

    def __init__(self, lane: Lane, rows: Mapping[str, RowsSpec], need: Need, run: SortedRun) -> None:
        self.run, self._chosen = run, dict[int, SortedRun]()
        label, *others = run.combinations.labels
        steps = () if others or not len(run) else need.steps(label)
        self._reaches = sorted({reach for _, reach in steps})
        if len(self._reaches) > 1:
            words = column(lane, rows[label], LINEAGE, run.combinations)
            self._reach = np.zeros(len(run), np.int64)
            for bit, reach in steps:
                self._reach = np.maximum(self._reach, np.where((words >> bit) & 1 != 0, reach, 0))

    def back_to(self, age: int) -> SortedRun:
        """The rows that some query joins with rows of this age, which is within the widest window."""
        if len(self._reaches) < 2 or age <= self._reaches[0]:
            return self.run
        return self._at(next(reach for reach in self._reaches if reach >= age))

    def _at(self, reach: int) -> SortedRun:
        if reach not in self._chosen:
            self._chosen[reach] = self.run.take(self._reach >= reach)
        return self._chosen[reach]
