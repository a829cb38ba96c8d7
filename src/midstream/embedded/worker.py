"""A worker process of an embedded engine: `main` with the number of its socket.

In: lane tasks by the socket. Out: reports of their lanes. It ends with the engine's process.
"""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from midstream.embedded.channel import Channel
from midstream.model.allowed import allow_operators
from midstream.model.errors import InternalError, MidstreamError, QueryError, fault_located
from midstream.model.ids import LaneId
from midstream.model.manifest import LaneState
from midstream.pipeline.crash_points import CrashPoint
from midstream.pipeline.lane_task import ShippedPredicates, Writes, failure, run_lane
from midstream.pipeline.outputs import RESULTS, JobOutput
from midstream.pipeline.staged_files import FILES_AT_ONCE, LanePieces, StagedFiles
from midstream.runtime.result_operator import Answer
from midstream.runtime.watermark import StepClock
from midstream.step.lane_report import encode_lanes
from midstream.step.plan_step import StepPlan
from midstream.storage.sweep import listed
from midstream.storage.transfers import threads
from midstream.storage.unsynced import Unsynced
from midstream.storage.write_back import WriteBackStore
from midstream.units.lane_step import LaneOutput

KILL_AT = "MIDSTREAM_KILL_WORKER_AT"
"""Names a point of a step, as `MIDSTREAM_KILL_AT` does, at which a worker dies that does its part for the first time.

The points are `before_job`, `amid_pieces`, `amid_tasks` and `after_chunks`.
"""


@dataclass(frozen=True)
class LaneTask:
    """Lanes of a level as a worker knows them: the `rows` of each by stream.

    The answers of the queries that are `staged` go to their sinks' staging, and back only if they are `kept`; all
    others go back. `attempt` names this one among all of the engine's, and `again` says that another worker has died
    over the task.
    """

    plan: StepPlan
    clock: StepClock
    rows: Mapping[LaneId, Mapping[str, pa.RecordBatch]]
    writes: Writes
    staged: frozenset[str]
    kept: bool
    operators: frozenset[str]
    predicates: ShippedPredicates
    attempt: int
    again: bool = False


class Worker:
    """Does lane tasks one after the other, and keeps what their lanes hold in memory for the next."""

    def __init__(self) -> None:
        self._unsynced = Unsynced()
        self._store: WriteBackStore | None = None
        self._known: dict[LaneId, LaneState] = {}

    def report(self, task: LaneTask) -> dict[str, Any]:
        """Do a task; what it reports counts once the engine commits the step."""
        allow_operators(*task.operators)
        try:
            with fault_located(lambda: f"worker process {os.getpid()}"):
                task.predicates.take_up()
                return self._run(task)
        except MidstreamError as error:
            return failure(error)

    def _run(self, task: LaneTask) -> dict[str, Any]:
        store = self._store = self._store or WriteBackStore(task.writes.store.synced_with(self._unsynced))
        # What it holds itself it need not read, as far as the step before is the one that this goes on from. What it
        # has made for another level of this step stays.
        sent = task.plan.manifest.lane_states
        self._known = {lane: state for lane, state in self._known.items() if lane in sent}
        states = {lane: known if (known := self._known.get(lane)) == state else state for lane, state in sent.items()}
        plan = replace(task.plan, manifest=replace(task.plan.manifest, lane_states=states))
        store.retain({*listed(plan.manifest), *listed(replace(plan.manifest, lane_states=self._known))})
        step, crash = task.clock.step, self._crash(task)
        crash.reach("before_job", step)
        files = StagedFiles(task.writes.staging, f"worker{task.attempt}", self._unsynced)
        outputs, results = dict[LaneId, LaneOutput](), dict[LaneId, dict[str, Answer]]()
        in_pieces = frozenset[str]() if task.kept else task.staged
        try:
            for lane, rows in task.rows.items():
                pieces = LanePieces(lane, in_pieces, files, crash, step, task.writes.pieces)
                output = run_lane(plan, lane, rows, task.clock, store, pieces)
                results[lane] = {name: self._rest(task, files, lane, name, one) for name, one in output.results.items()}
                outputs[lane] = output
                crash.reach("amid_tasks", step)
        finally:
            files.wait(0)  # What a failed step has staged is there when it is cleared away.
        label = f"{step:08d}-worker{task.attempt}"
        after = store.listed({lane: output.state for lane, output in outputs.items()}, label)
        written = files.finish()
        self._unsynced.sync(threads(FILES_AT_ONCE).map)
        crash.reach("after_chunks", step)
        self._known |= after
        outputs = {lane: replace(output, state=after[lane], results={}) for lane, output in outputs.items()}
        return {"lanes": encode_lanes(outputs), "results": results, "files": written}

    @staticmethod
    def _rest(task: LaneTask, files: StagedFiles, lane: LaneId, query: str, answer: Answer) -> Answer:
        # What of an answer goes back.
        if query not in task.staged:
            return answer
        files.put(JobOutput(RESULTS, query), str(lane), answer.table)
        if task.kept:
            return answer
        return replace(answer, table=answer.table.slice(0, 0), times=answer.times[:0], poured=answer.count)

    @staticmethod
    def _crash(task: LaneTask) -> CrashPoint:
        return CrashPoint("" if task.again else os.environ.get(KILL_AT, ""), (os.getpid(),))


def _end_with(descriptor: int, engine: int) -> None:
    # The engine's process may end amid a task, whose report nobody reads then. The socket alone does not say so: a
    # process that the engine's program has forked holds its other end, too.
    poll = select.poll()
    poll.register(descriptor, 0)
    with suppress(OSError):
        poll.register(os.pidfd_open(engine), select.POLLIN)
    if os.getppid() == engine:
        poll.poll()
    os._exit(0)


def main(descriptor: int, engine: int) -> None:
    """Do tasks until the process of the engine, which has the other end of the socket, is gone."""
    threading.Thread(target=_end_with, args=(descriptor, engine), daemon=True).start()
    channel, worker = Channel(socket.socket(fileno=descriptor)), Worker()
    while True:
        try:
            task = channel.receive()
        except (EOFError, ConnectionError):
            return
        except Exception as error:  # The task cannot be unpickled here, or there is no memory for it.
            report = failure(_not_here(error))
        else:
            report = worker.report(task)
        channel.send(report)


def _not_here(error: Exception) -> MidstreamError:
    kind = QueryError if isinstance(error, ImportError | AttributeError) else InternalError
    return kind(
        f"a worker process cannot load what the step needs: {error!r}",
        place="workers",
        remedy="have what queries use in modules that another process can import, or leave workers out",
    )
