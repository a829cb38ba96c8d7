"""Rows of an answer that a migration holds back, and their release (Zhu §4.2: the new plan's output waits)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from midstream.model.ids import StateId, StateKind
from midstream.runtime.lane import Lane
from midstream.runtime.result_operator import Answer
from midstream.state.keys import stable_order
from midstream.state.rows import one_batch

_TIME = "_now"
"""The last column of rows held back. A column of the answer may have this name too."""


def held_id(query: str, since: int) -> StateId:
    """Name the lane's table of rows held back.

    >>> held_id("pairs", 3)
    'pairs.3.held'
    """
    return StateId(query, str(since), StateKind.HELD.value)


def hold_back(lane: Lane, table_id: StateId, answer: Answer) -> None:
    """Add a step's results to those held back."""
    rows = answer.table.append_column(_TIME, pa.array(answer.times, pa.int64()))
    held = lane.table(table_id)
    table = rows if held is None else pa.concat_tables([pa.Table.from_batches([held]), rows])
    lane.keep(table_id, one_batch(table, f"rows held back, {table_id}"))


def released(lane: Lane, table_id: StateId, answer: Answer) -> Answer:
    """Add all rows that were held back to the answer, in order of time."""
    held = lane.table(table_id)
    return with_held(answer, () if held is None else (held,))


def with_held(answer: Answer, held: Sequence[pa.RecordBatch]) -> Answer:
    """Add rows of tables that were held back to the answer, in order of time."""
    if not held:
        return answer
    times = np.concatenate([*(one.columns[-1].to_numpy() for one in held), answer.times])
    kept = [pa.Table.from_batches([one]).remove_column(one.num_columns - 1) for one in held]
    table = pa.concat_tables([*kept, answer.table])
    order = stable_order(times)
    return Answer(table.take(pa.array(order)), times[order], answer.dead)
