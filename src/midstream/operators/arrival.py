"""Arrival numbers, which `ROWS` windows are measured by."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from midstream.state.base_state import TIME, count_column


def with_arrival_numbers(batches: Mapping[str, pa.RecordBatch], counts: Mapping[str, int]) -> dict[str, pa.RecordBatch]:
    """Add to every row how many rows of each counted stream have arrived, the row itself included.

    A step's rows arrive in the order (time, stream, position); the order of `batches` is that of the streams. `counts`
    gives for each stream to count its arrivals before the step.
    """
    if not counts:
        return dict(batches)
    names = list(batches)
    times = np.concatenate([batches[n].column(TIME).to_numpy() for n in names])
    owner = np.repeat(np.arange(len(names)), [batches[n].num_rows for n in names])
    order = np.lexsort((owner, times))
    numbered = dict(batches)
    for stream, before in counts.items():
        seen = np.empty(len(times), np.int64)
        seen[order] = before + np.cumsum(owner[order] == names.index(stream))
        for at, name in enumerate(names):
            numbered[name] = numbered[name].append_column(count_column(stream), pa.array(seen[owner == at]))
    return numbered
