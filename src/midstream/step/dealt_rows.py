"""The embedded way of spreading a step's rows over lanes: arrival numbers, then a share for each lane.

Spark numbers and spreads them in the JVM (`midstream.spark.exchange`), to the same slots.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from midstream.model.ids import LaneId
from midstream.operators.arrival import with_arrival_numbers
from midstream.runtime.distribution import Stage
from midstream.runtime.lane_key import slots
from midstream.runtime.watermark import StepClock
from midstream.state.gather import MANY
from midstream.state.keys import stable_order
from midstream.state.rows import taken_rows
from midstream.step.plan_step import StepPlan
from midstream.units.lane_step import LaneOutput
from midstream.units.program import Program

What = TypeVar("What")
Done = TypeVar("Done")

LaneRows = Mapping[LaneId, Mapping[str, pa.RecordBatch]]
"""A share of the rows by lane and stream."""


class Each(Protocol):
    """Does something for each of several, which share nothing that changes; what came of each, in their order."""

    def __call__(self, do: Callable[[What], Done], many: Sequence[What], /) -> Iterable[Done]:
        """Call `do` for each of `many`, and return the results in their order."""


class RunsLanes(ABC):
    """An `Each` that runs lanes in other processes, and does everything else in this one."""

    @abstractmethod
    def __call__(self, do: Callable[[What], Done], many: Sequence[What], /) -> Iterable[Done]:
        """Call `do` for each of `many` in this process."""

    @abstractmethod
    def run_lanes(self, plan: StepPlan, rows: LaneRows, clock: StepClock) -> Mapping[LaneId, LaneOutput] | None:
        """Run lanes of a level on their rows; None if they are to run in this process."""


def one_by_one(do: Callable[[What], Done], many: Sequence[What], /) -> Iterable[Done]:
    """Call `do` for each of `many`, one after the other.

    >>> one_by_one(abs, [-1, 2])
    [1, 2]
    """
    return list(map(do, many))


FEW = 8
"""Of so few lanes many rows are found lane by lane, which takes no sort."""


def counted_streams(plan: StepPlan) -> tuple[str, ...]:
    """List the streams whose arrivals a ROWS window of any query counts, in order of the streams."""
    known = plan.arrangement.counted
    if not known:
        units = [unit for group in plan.groups() for unit in plan.program(group).units]
        counted = {stream for unit in units if not unit.ordered for stream in unit.counted}
        known.append(tuple(stream for stream in plan.manifest.streams if stream in counted))
    return known[0]


def numbered(plan: StepPlan, rows: dict[str, pa.RecordBatch]) -> dict[str, pa.RecordBatch]:
    """Number the step's rows, where a ROWS window counts them; otherwise return the rows themselves."""
    counted, progress = counted_streams(plan), plan.manifest.progress
    if not counted:
        return rows
    return with_arrival_numbers(rows, {s: progress[s].rows if s in progress else 0 for s in counted})


def spread(
    plan: StepPlan,
    group: str,
    program: Program,
    stage: Stage,
    rows: Mapping[str, pa.RecordBatch],
    each: Each = one_by_one,
) -> dict[LaneId, dict[str, pa.RecordBatch]]:
    """Deal the rows that a stage begins with to the lanes of a group, by lane and stream.

    `each` runs over the streams.
    """
    streams, key, lanes = program.streams, stage.lane_key, plan.lanes(group)
    if key is None or lanes == 1:
        return {LaneId(group, 0): {s: rows[s] for s in streams}}

    def own(stream: str) -> list[pa.RecordBatch]:
        batch = rows[stream]
        return shared(batch, slots(key, stream, batch) % lanes, lanes) if batch.num_rows else [batch] * lanes

    side_by_side = each if sum(rows[s].num_rows for s in streams) >= MANY else one_by_one
    shares = dict(zip(streams, side_by_side(own, streams), strict=True))
    return {LaneId(group, lane): {s: shares[s][lane] for s in streams} for lane in range(lanes)}


def shared(rows: pa.RecordBatch, owners: npt.NDArray[np.integer[Any]], lanes: int) -> list[pa.RecordBatch]:
    """Split rows by the lane that owns them, in their order.

    >>> shared(pa.record_batch({"k": [7, 8, 9]}), np.array([1, 0, 1]), 2)[1].to_pydict()
    {'k': [7, 9]}
    """
    if lanes <= FEW and len(rows) >= MANY // 16:
        return [taken_rows(rows, np.flatnonzero(owners == lane)) for lane in range(lanes)]
    together = rows.take(pa.array(stable_order(owners.astype(np.int64))))
    ends = np.cumsum(np.bincount(owners, minlength=lanes)).tolist()
    return [together.slice(begin, end - begin) for begin, end in zip([0, *ends], ends, strict=False)]
