"""The process executor of an embedded engine: lanes run in worker processes, each lane always in the same one.

In: the lanes of a level and their rows. Out: their outputs; chunks are in the checkpoint, results staged for the sinks.
A worker that dies is replaced, and does its part once more.
"""

from __future__ import annotations

import os
import subprocess
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from multiprocessing.reduction import ForkingPickler
from typing import Any, TypeVar

import pyarrow as pa
from typing_extensions import override

from midstream.embedded.channel import Channel
from midstream.embedded.worker import LaneTask
from midstream.expr.user_predicates import UserPredicate
from midstream.model.errors import InputError, QueryError, WriteError
from midstream.model.ids import LaneId
from midstream.model.manifest import Manifest, OutputFile
from midstream.pipeline.lane_task import (
    ShippedPredicates,
    Writes,
    operators_shipped,
    predicates_of,
    raise_failure,
    stripped,
)
from midstream.runtime.watermark import StepClock
from midstream.state.gather import MANY
from midstream.step.dealt_rows import Each, LaneRows, RunsLanes
from midstream.step.lane_report import decode_lanes
from midstream.step.plan_step import StepPlan
from midstream.units.answers import unread
from midstream.units.lane_step import LaneOutput

What = TypeVar("What")
Done = TypeVar("Done")

ATTEMPTS = 3
"""So often a task is done in all, if its worker dies."""

LEAST_ROWS = 2 * MANY
"""Lanes with fewer rows in all run in the engine's process: to hand them over takes as long as they take there."""

_WORKER = LaneTask.__module__

_IN_A_MODULE = "put it into a module that other processes can import, or leave workers out"


@dataclass
class _Process:
    """A worker process and this end of its channel."""

    channel: Channel
    process: subprocess.Popen[bytes]

    @staticmethod
    def start() -> _Process:
        # A program of its own: no main module is loaded again, and no lock or thread of this process is copied.
        channel, other = Channel.pair()
        with other:
            paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    f"from {LaneTask.__module__} import main; main({other.fileno()}, {os.getpid()})",
                ],
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": paths},
                process_group=0,  # An interrupt from the keyboard is for the engine, which ends its workers.
            )
        return _Process(channel, process)

    def end(self) -> int:
        self.channel.close()
        with suppress(OSError):
            self.process.kill()
        return self.process.wait()


class Workers:
    """The worker processes of an engine. They start with the first step that needs them."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._processes: dict[int, _Process] = {}
        self.homes: dict[LaneId, int] = {}
        self.deaths = 0
        self._attempts = count(1)
        # Also where the engine is never closed. A forked child has no part in them.
        self._end = weakref.finalize(self, _end_all, self._processes, os.getpid())

    def run(self, tasks: Mapping[int, LaneTask]) -> list[dict[str, Any]]:
        """Run tasks, by worker, at the same time; raises what one of them failed by, when all have ended."""
        try:
            for worker, task in tasks.items():
                self._begin(worker, task)
            reports = [self._report(worker, task) for worker, task in tasks.items()]
        except BaseException as error:
            self.close()  # What others report is of no step.
            if isinstance(error, OSError):
                raise WriteError(
                    f"the worker processes cannot get their lanes: {error}",
                    place=f"step {next(iter(tasks.values())).clock.step}",
                    remedy="check the limits of memory, processes and open files (ulimit -a); push the rows "
                    "again, or use "
                    "fewer workers",
                ) from error
            raise
        for report in reports:
            raise_failure(report)
        return reports

    def home(self, lane: LaneId) -> int:
        """Return the worker of a lane, which stays the same; a new one goes where the fewest are."""
        if lane not in self.homes:
            lanes = Counter(self.homes.values())
            self.homes[lane] = min(range(self.number), key=lanes.__getitem__)
        return self.homes[lane]

    def forget_homes(self, plan: StepPlan) -> None:
        """Forget the homes of lanes that a plan no longer has."""
        groups = set(plan.groups())
        gone = [one for one in self.homes if one.group not in groups or one.number >= plan.lanes(one.group)]
        for lane in gone:
            del self.homes[lane]

    def attempt(self) -> int:
        """Number an attempt at a task, by which the names of its files differ from all others'."""
        return next(self._attempts)

    def close(self) -> None:
        """End all processes; those of a later step are new."""
        _end_all(self._processes, os.getpid())

    def _begin(self, worker: int, task: LaneTask) -> None:
        if worker not in self._processes:
            self._processes[worker] = _Process.start()
        with suppress(ConnectionError):  # Where it has died, its report is missing.
            self._processes[worker].channel.send(task)

    def _report(self, worker: int, task: LaneTask) -> dict[str, Any]:
        for tried in range(1, ATTEMPTS + 1):
            with suppress(EOFError, ConnectionError):
                found: dict[str, Any] = self._processes[worker].channel.receive()
                return found
            status = self._processes.pop(worker).end()
            self.deaths += 1
            if tried < ATTEMPTS:
                self._begin(worker, replace(task, attempt=self.attempt(), again=True))
        how = f"by signal {-status}" if status < 0 else f"with status {status}"
        raise WriteError(
            f"{ATTEMPTS} worker processes in a row ended {how} before they completed their lanes",
            place=f"step {task.clock.step}, worker {worker}",
            remedy="read the last lines of this worker on standard error, and check whether memory was short (dmesg); "
            "push the rows again, or use fewer workers",
        )


def _end_all(processes: dict[int, _Process], owner: int) -> None:
    if os.getpid() == owner:
        while processes:
            processes.popitem()[1].end()


@dataclass
class InProcesses(RunsLanes):
    """Runs the lanes of one step in worker processes where they have many rows.

    `each` runs all other lanes. `writes` opens where workers write. Answers that no query reads go to
    their sinks' staging, from which they come back only if they are `kept`; `files` are the staged ones, `staged` their
    queries.
    """

    workers: Workers
    each: Each
    writes: Callable[[Manifest], Writes]
    kept: bool
    files: list[OutputFile] = field(default_factory=list)
    staged: set[str] = field(default_factory=set)

    @override
    def __call__(self, do: Callable[[What], Done], many: Sequence[What], /) -> Iterable[Done]:
        return self.each(do, many)

    @override
    def run_lanes(self, plan: StepPlan, rows: LaneRows, clock: StepClock) -> Mapping[LaneId, LaneOutput] | None:
        """Run lanes in the workers, unless they have few rows, or one of the workers would have them all."""
        if sum(batch.num_rows for own in rows.values() for batch in own.values()) < LEAST_ROWS:
            return None
        home = self.workers.home
        self.workers.forget_homes(plan)
        if len(set(map(home, rows))) < 2:
            return None
        manifest, writes = plan.manifest, self.writes(plan.manifest)
        check_shippable(manifest)
        staged = frozenset(_staged(manifest))
        task = LaneTask(
            plan=stripped(plan),
            clock=clock,
            rows={},
            writes=replace(writes, staging={of: one for of, one in writes.staging.items() if of.name in staged}),
            staged=staged,
            kept=self.kept,
            operators=operators_shipped(manifest),
            predicates=ShippedPredicates.of(predicates_of(manifest), _sent, _IN_A_MODULE),
            attempt=0,
        )
        by_worker: dict[int, dict[LaneId, Mapping[str, pa.RecordBatch]]] = {}
        for lane, own in rows.items():
            shares = {stream: _compact(batch) for stream, batch in own.items()}
            by_worker.setdefault(home(lane), {})[lane] = shares
        states = task.plan.manifest.lane_states
        tasks = {}
        for worker, lanes in by_worker.items():
            own_states = {lane: state for lane, state in states.items() if self.workers.homes.get(lane) == worker}
            own_plan = replace(task.plan, manifest=replace(task.plan.manifest, lane_states=own_states))
            tasks[worker] = replace(task, plan=own_plan, rows=lanes, attempt=self.workers.attempt())
        found: dict[LaneId, LaneOutput] = {}
        for report in self.workers.run(tasks):
            outputs, results = decode_lanes(report["lanes"]), report["results"]
            found |= {lane: replace(output, results=results[lane]) for lane, output in outputs.items()}
            self.files += report["files"]
            self.staged |= staged.intersection(query for own in results.values() for query in own)
        return {lane: found[lane] for lane in rows}


def workers_of(workers: int | str | None, *, checkpoint: bool, limited: bool) -> int | None:
    """Return how many worker processes an engine has, or None for none; raises where it cannot have so many.

    "auto" is one for each core that this process may use, and none where there is one core or no such process can be.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    if workers == "auto":
        return cores if cores > 1 and checkpoint and not limited and hasattr(os, "memfd_create") else None
    if workers is None:
        return None
    if not isinstance(workers, int) or isinstance(workers, bool) or workers < 1:
        raise InputError(
            f"an engine cannot have {workers!r} workers", place="workers", remedy='use 1 or more, or "auto"'
        )
    if not hasattr(os, "memfd_create"):
        raise InputError(
            f"worker processes need the memfd of Linux, which {sys.platform} does not have",
            place="workers",
            remedy="leave workers out: lanes then run in threads",
        )
    if not checkpoint:
        raise InputError(
            "an engine in memory cannot have worker processes, because these processes share a checkpoint",
            place="workers",
            remedy='use threads, or give the engine a checkpoint: Engine(checkpoint="ckpt")',
        )
    if limited:
        raise InputError(
            "an engine cannot have both worker processes and a memory limit",
            place="workers",
            remedy="leave out either workers or memory",
        )
    return workers


def check_shippable(manifest: Manifest) -> None:
    """Raise a `QueryError` where a query uses code that exists in this process only."""
    for name, entry in manifest.queries.items():
        path = "" if entry.operator is None else str(entry.operator["class"])
        if path.startswith("__main__:"):
            raise QueryError(
                f"worker processes cannot load the operator {path}, which the main program defines",
                place=f"query {name}",
                remedy=_IN_A_MODULE,
            )


def _sent(one: UserPredicate) -> object:
    if getattr(one.function, "__module__", None) == "__main__":
        raise ValueError("the main program defines the function")
    return ForkingPickler.dumps(one)


def _staged(manifest: Manifest) -> Iterator[str]:
    # A function gets a step's rows as one table, in order of time.
    for name in unread(manifest):
        entry = manifest.queries[name]
        if not entry.part and "function" not in (entry.sink or {}):
            yield name


def _compact(batch: pa.RecordBatch) -> pa.RecordBatch:
    # Of a slice the whole columns would be sent.
    if batch.get_total_buffer_size() <= 2 * batch.nbytes + 4096:
        return batch
    return pa.RecordBatch.from_arrays([pa.concat_arrays([one]) for one in batch.columns], schema=batch.schema)
