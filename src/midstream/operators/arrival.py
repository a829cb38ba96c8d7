"""In what order rows arrive: their arrival numbers, which `ROWS` windows are measured by, and rows that wait.

At an instant, a `ROWS` window holds the last rows by event time (CQL). A query that is evaluated at instants (EVERY,
EXCEPT) and has such a window therefore takes its rows only once the watermark has passed them, in order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from midstream.model.ids import StateId, StateKind
from midstream.runtime.lane import Lane
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


def pending_id(query: str, since: int, stream: str) -> StateId:
    """The queue of a query's rows that wait for the watermark; `since` is the query's first step."""
    return StateId(f"{stream}.{query}", str(since), StateKind.QUEUE.value)


def release(
    lane: Lane,
    query: str,
    since: int,
    inputs: Mapping[str, str],
    counted: Mapping[str, str],
    columns: Mapping[str, Collection[str]],
) -> None:
    """Feed the query's own inputs with the rows that its watermark passes in this step, in order of event time.

    `inputs` names for each stream the query's input; `counted` is the part of it whose arrivals ROWS windows count;
    `columns` is what the query reads of each stream.
    Rows not released wait in the lane.
    """
    watermark = min(lane.clock.after[stream] for stream in inputs)
    released: dict[str, pa.RecordBatch] = {}
    counts: dict[str, int] = {}
    for stream in inputs:
        state = pending_id(query, since, stream)
        arrived = lane.input(stream).select([TIME, *sorted(columns[stream])])
        waiting = lane.queued(state, arrived)
        due = pc.less(waiting.column(TIME), watermark)
        ready = waiting.filter(due)
        order = np.argsort(ready.column(TIME).to_numpy(), kind="stable")
        released[stream] = ready.take(pa.array(order))
        counts[stream] = lane.taken_from(state)
        lane.queue(state, waiting.filter(pc.invert(due)), counts[stream] + ready.num_rows)
    numbered = with_arrival_numbers(released, {stream: counts[stream] for stream in counted})
    for stream, name in inputs.items():
        lane.feed(name, numbered[stream], counts[stream])
