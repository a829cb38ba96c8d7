"""What tasks in other processes share: where they write, how a lane runs there, and how a failure is reported.

In: a plan, a lane's rows and what it held. Out: the lane's output, its chunks in files, its results staged.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from midstream.expr.functions import predicates_asked
from midstream.expr.user_predicates import UserPredicate, needed, take
from midstream.logical.query import query_of
from midstream.model import errors
from midstream.model.allowed import allowed_operators
from midstream.model.codec import decode
from midstream.model.counters import Counters
from midstream.model.errors import MidstreamError, QueryError
from midstream.model.ids import LaneId
from midstream.model.lane_choice import LaneOptimization
from midstream.model.manifest import LaneState, Manifest, Published
from midstream.operators.user_operator import OperatorSpec
from midstream.pipeline.crash_points import CrashPoint
from midstream.pipeline.outputs import JobOutput
from midstream.runtime.piece_writer import PieceSizes, PieceWriter
from midstream.runtime.watermark import StepClock
from midstream.sinks import Staging
from midstream.state.chunk_store import ChunkStore
from midstream.step.fold import state_of
from midstream.step.plan_step import StepPlan
from midstream.step.spreading.taken_over import with_returned
from midstream.storage.files import FileStore
from midstream.units.lane_step import LaneOutput, lane_step


class FaultInWorker(Exception):
    """What went wrong in a task, as the cause of the error raised for it: the traceback in the Python worker."""


@dataclass(frozen=True)
class Writes:
    """Where the tasks of a step write: the store of chunks, and the staging of each output, in `pieces` if large."""

    store: FileStore
    staging: Mapping[JobOutput, Staging]
    crash: CrashPoint
    pieces: PieceSizes


@dataclass(frozen=True)
class ShippedPredicates:
    """The users' predicates that a step asks, on their way into workers with the task that holds them: never by way of
    a checkpoint.
    """

    predicates: tuple[UserPredicate, ...] = ()

    @classmethod
    def of(
        cls, names: Iterable[str], send: Callable[[UserPredicate], object], remedy: str = "leave out what cannot go"
    ) -> ShippedPredicates:
        """Collect the predicates registered under these names.

        `send` is how each is going to travel. Raises a `QueryError` with the `remedy` for one that cannot be sent.
        """
        found = cls(tuple(needed(name) for name in names))
        for one in found.predicates:
            try:
                send(one)
            except Exception as error:  # What a function refers to may raise anything.
                raise QueryError(
                    f"the predicate cannot be sent to the workers: {(error.__context__ or error)!r}",
                    place=f"predicate {one.describe()}",
                    remedy=remedy,
                ) from error
        return found

    def take_up(self) -> None:
        """Register the predicates in this process, in place of any others of their names."""
        for one in self.predicates:
            take(one)


def stripped(plan: StepPlan) -> StepPlan:
    """Remove from the plan what no task looks at, so that it travels light and programs are known again."""
    queries = {name: replace(entry, counters=Counters(), sink=None) for name, entry in plan.manifest.queries.items()}
    manifest = replace(
        plan.manifest,
        queries=queries,
        operators={},
        totals=Counters(),
        published=Published(),
        progress={},
        lane_optimization=LaneOptimization(),
    )
    return replace(plan, manifest=manifest, events=())


def operators_shipped(manifest: Manifest) -> frozenset[str]:
    """List the operators that a task may make; raises for one of the manifest that this program does not allow."""
    specs = [decode(OperatorSpec, e.operator) for e in manifest.queries.values() if e.operator is not None]
    for spec in specs:
        # An operator that is not allowed must not be made.
        spec.check_allowed()
    return allowed_operators() | {spec.path for spec in specs}


def predicates_of(manifest: Manifest) -> tuple[str, ...]:
    """List the users' predicates that the queries of a manifest ask."""
    queries = (query_of(entry) for entry in manifest.queries.values())
    return tuple(sorted({name for query in queries for part in query.expressions() for name in predicates_asked(part)}))


def run_lane(
    plan: StepPlan,
    lane: LaneId,
    rows: Mapping[str, pa.RecordBatch],
    clock: StepClock,
    store: ChunkStore,
    pieces: PieceWriter,
    returning: LaneState | None = None,
) -> LaneOutput:
    """Run a lane's step in a task; answers of many rows go to `pieces`."""
    state = with_returned(state_of(plan, lane.group, lane, store), returning)
    return lane_step(plan.program(lane.group), lane, state, rows, clock, store, pieces)


def failure(error: MidstreamError) -> dict[str, Any]:
    """Report the failure of a task; called while the error is handled."""
    told = [type(error).__name__, error.message, error.place, error.remedy]
    return {"error": told, "traceback": traceback.format_exc()}


def raise_failure(report: Mapping[str, Any]) -> None:
    """Raise the error that a task reports, if it does."""
    if "error" in report:
        name, message, place, remedy = report["error"]
        kind: type[MidstreamError] = getattr(errors, name, MidstreamError)
        raise kind(message, place=place, remedy=remedy) from FaultInWorker(report["traceback"])
