"""The checkpoint of an embedded engine: every step is committed in it before its results are given back."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import Any

import pyarrow as pa

from midstream.admission.refused_rows import appended, of_queries
from midstream.checkpoint.event_log import JsonObject
from midstream.checkpoint.folders import DEAD_LETTERS, LATE, REJECTED, Folders
from midstream.checkpoint.writer import Writer
from midstream.model.errors import InputError, LostCheckpointError, MidstreamError, SinkError, UndeliveredError
from midstream.model.events import Event
from midstream.model.manifest import EMBEDDED, Manifest, OutputFile
from midstream.pipeline.commits import Commits
from midstream.pipeline.crash_points import AMID_PIECES, CrashPoint
from midstream.pipeline.lane_task import Writes
from midstream.pipeline.outputs import RESULTS, JobOutput, Outputs, dropped_next
from midstream.pipeline.reconcile import refuse_other_host
from midstream.pipeline.step_times import StepTimes, Stopwatch
from midstream.runtime import piece_writer
from midstream.runtime.piece_writer import PieceSizes
from midstream.sinks import FileSink, Sink, Staging
from midstream.sinks.contract import anything
from midstream.sinks.formats import parquet_rows
from midstream.step.fold import OpenPieces, StepResult
from midstream.storage.files import FileStore
from midstream.storage.memory_limit import MemoryLimit
from midstream.storage.places import located, storage_at
from midstream.storage.unsynced import Unsynced
from midstream.storage.write_back import WriteBackStore
from midstream.units.answers import unread

SIDE_BY_SIDE = 1 << 20
"""From so many bytes of results on they are written next to the chunks even where no write waits for a store: with
less, threads only wait for each other.
"""


class EngineCheckpoint:
    """A checkpoint that this process writes, one step after the other.

    What the newest step has left undone in the sinks is done when the checkpoint is taken up, or with the first step
    where a query's results go to a function, which must be named again before.
    """

    def __init__(
        self, place: str | os.PathLike[str], *, durable: bool, take_over: bool, limit: MemoryLimit | None = None
    ) -> None:
        self._unsynced = Unsynced()
        self.folders = Folders(located(place), durable, self._unsynced)
        refuse_other_host(self.folders.manifests.latest(), EMBEDDED, self.folders.root)
        self._writer = Writer.take(self.folders.manifests, take_over=take_over)
        self.outputs = Outputs(self.folders, {}, tasks_end=True)
        self._commits = Commits(self._writer, self.outputs, CrashPoint.of_environment(os.getpid()))
        self.tables = FileStore(self.folders.chunks)
        self.store = WriteBackStore(FileStore(self.folders.chunks, epoch=self._writer.claim.number, limit=limit))
        self.times = StepTimes(self.folders, self._writer.claim.number)
        self._begun: Manifest | None = None
        self._undelivered = self._overdue = self._unsettled = self._again = False
        self._tried = 0
        self._sender = ThreadPoolExecutor(1, thread_name_prefix="midstream-sinks")
        self._sent: tuple[Manifest, Future[None]] | None = None
        self._lost: LostCheckpointError | None = None
        self._attempts = count(1)
        self._staged: StagedResults | None = None
        self._from_workers: tuple[OutputFile, ...] = ()
        self._staged_outputs = frozenset[JobOutput]()

    def open(self, first: Manifest) -> Manifest:
        """Read the newest manifest, after the claim; of a new checkpoint the `first` one, which gets a name."""
        try:
            newest = self.folders.manifests.latest()
            manifest = replace(first, job=secrets.token_hex(8)) if newest is None else newest
            named = all("function" not in (entry.sink or {}) for entry in manifest.queries.values())
            if not named:
                return manifest
            begun = self.begin(manifest)
            self.finish(begun)
            return begun
        except BaseException:
            self.close()
            raise

    def begin(self, manifest: Manifest) -> Manifest:
        """Publish, once, the manifest that this epoch goes on from; `finish` then fills what was cut short."""
        if self._begun is not None:
            return manifest if manifest.epochs == self._begun.epochs else self._begun
        for query in manifest.asked_queries:
            self.outputs.check_sink(query, manifest, manifest)
        self.outputs.check(manifest)
        self._begun = self._writer.begin(self._marked(manifest))
        self._undelivered = self._unsettled = True
        return self._begun

    def declare(self, manifest: Manifest) -> Manifest:
        """Publish a manifest that was changed between two steps, by declarations or commands."""
        self.settle()
        marked = self._marked(manifest)
        if self._begun is not None:
            self._only_writer(marked)
        return marked

    def dropped_next(self, manifest: Manifest) -> frozenset[str]:
        """Return the queries of a manifest that its next step drops."""
        return dropped_next(manifest, self.folders)

    def waits(self, manifest: Manifest) -> bool:
        """Return whether commands of the log, or results of the newest step, wait for the next one."""
        undelivered = self._undelivered and not self.is_sending
        return undelivered or bool(self.folders.commands.after(manifest.last_command))

    def reach(self, point: str, step: int) -> None:
        """Mark a named point of a step at which a test may have this process killed."""
        self._commits.crash.reach(point, step)

    def pieces(self, before: Manifest) -> OpenPieces:
        """Make what takes the results of the step after a manifest piece by piece. It is committed next, or given
        up."""

        def opened(manifest: Manifest) -> StagedResults:
            if self._staged is not None and self._staged.files:
                self._tried += 1  # The step failed before it was to be committed: what it left is to be cleared away.
            attempt = f"attempt{next(self._attempts)}"
            self._staged = StagedResults(self.outputs, before, manifest, attempt, self.reach)
            return self._staged

        return opened

    def writes(self, before: Manifest) -> Callable[[Manifest], Writes]:
        """Make what opens where worker processes write in the step after a manifest."""
        # They sync what they write themselves.
        folders = Folders(self.folders.root, self.folders.durable)
        store = FileStore(folders.chunks, epoch=self._writer.claim.number)

        def opened(manifest: Manifest) -> Writes:
            staging = self.outputs.stage(before, self.outputs.named(manifest))
            return Writes(store, staging, self._commits.crash, piece_writer.SIZES)

        return opened

    def take_staged(self, files: Sequence[OutputFile], queries: Set[str], *, again: bool) -> None:
        """Take what workers have staged of the step that is committed next: the answers of some queries.

        What a worker that died, or a step that failed, has left is cleared away `again`.
        """
        self._tried += again or bool(self._from_workers)
        self._from_workers = tuple(files)
        self._staged_outputs = frozenset(JobOutput(RESULTS, query) for query in queries)

    def commit(
        self,
        before: Manifest,
        result: StepResult,
        events: Sequence[Event],
        pool: Executor,
        watch: Stopwatch,
        read: Mapping[str, Sequence[str]] | None = None,
    ) -> Manifest:
        """Commit a step and return its manifest as it is published.

        Args:
            before: The manifest before the step.
            result: What the step found.
            events: What happened in it.
            pool: Threads for what can be written at once.
            watch: Gets what the commit takes by phase.
            read: What the step has read by stream, if that is known.

        Raises before anything of it counts, or not at all.
        """
        self.refuse_if_lost()
        manifest = self.outputs.named(result.manifest)
        tables = {of: rows for of, rows in _tables(result).items() if of not in self._staged_outputs}
        attempt = f"attempt{next(self._attempts)}"
        poured = [*self._from_workers, *(() if self._staged is None else self._staged.files)]
        self._staged, self._from_workers, self._staged_outputs = None, (), frozenset()

        def stage() -> tuple[OutputFile, ...]:
            return (*poured, *self.outputs.stage_tables(before, manifest, tables, attempt))

        def note() -> list[JsonObject]:
            return self.folders.events.write_together(manifest, events)

        self._tried += 1
        self.reach("amid_tasks", manifest.step)
        if self.folders.storage.at_once == 1 and sum(table.nbytes for table in tables.values()) < SIDE_BY_SIDE:
            files, after, waiting = stage(), self.store.written(manifest), note()
            self._unsynced.sync()
        else:
            # Each of them waits for the store, and none for another.
            staged, noted = pool.submit(stage), pool.submit(note)
            try:
                after = self.store.written(manifest, pool.map)
            finally:
                wait([staged])
                wait([noted])
            files, waiting = staged.result(), noted.result()
            self._unsynced.sync(pool.map)
        watch.lap("store")
        self.reach("after_chunks", manifest.step)
        sources = {} if read is None else {"read": {name: tuple(one) for name, one in read.items()}}
        after = self._marked(after, files=files, events=tuple(waiting), **sources)
        # No manifest says what the sinks lack of a step before it.
        if self.is_sending:
            with watch.phase("sinks"):
                self.settle()
        try:
            self._commits.publish(after)
        except LostCheckpointError as error:
            self._lost = error
            raise
        watch.lap("commit")
        self._undelivered, self._again, self._tried = True, self._tried > 1, 0
        return after

    def finish(self, manifest: Manifest) -> None:
        """Fill the sinks with the results of the newest step, unless that was done.

        Before the first step of an epoch it takes out what does not count, and after it what nobody will commit any
        more.
        """
        try:
            if self._unsettled:
                self._commits.settle(manifest)
            elif self._overdue:
                self._writer.check()
            if self._undelivered:
                self._overdue = True
                self._commits.deliver(manifest, again=self._again)
                self._undelivered = self._overdue = False
            if self._unsettled:
                self._commits.clear(manifest)
                self._unsettled = False
        except LostCheckpointError as error:
            self._lost = error
            raise

    def deliver(self, manifest: Manifest, *, aside: bool = False) -> None:
        """Fill the sinks right after the step; a failure leaves the step committed and its rows taken.

        Where it may be done `aside`, and the sinks allow that, a thread does it until `settle`.
        """
        if aside and not (self._unsettled or self._again) and self._commits.may_fill_aside(manifest):
            self._sent = manifest, self._sender.submit(self._commits.fill, manifest, keeps=True)
            return
        with _delivering(manifest):
            self.finish(manifest)

    @property
    def is_sending(self) -> bool:
        """Whether a thread fills the sinks with the results of the newest step."""
        return self._sent is not None

    def settle(self) -> None:
        """Wait until the sinks have what a thread fills them with; raises where they do not get it."""
        if self._sent is None:
            return
        (manifest, sending), self._sent, self._overdue = self._sent, None, True
        with _delivering(manifest):
            sending.result()
            self.outputs.remove_staged(manifest)
        self._undelivered = self._overdue = False

    def rejected(self, kind: str, manifest: Manifest) -> dict[str, pa.Table]:
        """Read all `late` rows or `dead_letters` of the checkpoint, by stream; the latter also `of_queries`."""
        places = [(kind, stream) for stream in manifest.streams]
        if kind == DEAD_LETTERS:
            places += [(REJECTED, query) for query, entry in manifest.queries.items() if entry.rejects]
        found: dict[str, pa.Table] = {}
        for folder_kind, name in places:
            place = self.folders.rejected(folder_kind, name)
            storage = storage_at(place)
            for _, file in FileSink(place).files(range(manifest.step + 1), anything):
                rows = {name: parquet_rows(storage.read(file), storage.place(file))}
                found = appended(found, of_queries(rows) if folder_kind == REJECTED else rows)
        return found

    def name_sink(self, query: str, sink: Sink, manifest: Manifest, ahead: Manifest) -> None:
        """Send the results of a query to a sink from now on, if it takes what they will be with the next step.

        Where functions are still to be named, those of running queries are checked when the first step begins.
        """
        if query in ahead.queries and (self._begun is not None or query not in manifest.queries):
            self.outputs.check_given(query, sink, ahead, manifest)
        self.outputs.sinks[query] = sink

    def name_dead_letters(self, stream: str, sink: Sink) -> None:
        """Have the dead letters of a stream go to a sink as well, from the next step on."""
        sink.open()
        self.outputs.dead_letters[stream] = sink

    def refuse_if_lost(self) -> None:
        """Raise if another process has taken the checkpoint over, as far as this one has seen."""
        if self._lost is not None:
            raise self._lost

    def close(self, failure: BaseException | None = None, manifest: Manifest | None = None) -> None:
        """Release the checkpoint, with the `failure` that ended the job, if any, and the sinks of the `manifest`."""
        self._sender.shutdown()
        self.times.write()
        if manifest is not None:
            self.outputs.close(manifest)
        if self._lost is None:
            self._writer.release(failure)

    def _only_writer(self, manifest: Manifest) -> None:
        self.refuse_if_lost()
        try:
            self._writer.commit(manifest)
        except LostCheckpointError as error:
            self._lost = error
            raise

    @staticmethod
    def _marked(manifest: Manifest, **more: Any) -> Manifest:
        return replace(manifest, published=replace(manifest.published, host=EMBEDDED, **more))


@contextmanager
def _delivering(manifest: Manifest) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        # Also what a user's function raises: the step is committed in any case.
        known = error if isinstance(error, MidstreamError) else SinkError(f"{type(error).__name__}: {error}")
        raise UndeliveredError(
            f"step {manifest.step} is committed, but a sink has not taken its results: {known.message}",
            place=known.place,
            remedy=f"do not push the rows of this step again; {known.remedy or 'correct the fault'}; the next push "
            "delivers the results first",
        ) from error


def refuse_if_closed(closed: bool) -> None:
    """Raise where an engine has been closed: its checkpoint may be another's by now."""
    if closed:
        raise InputError(
            "the engine is closed",
            place="Engine",
            remedy="make a new engine on the same checkpoint: the new engine continues after the newest step",
        )


def refuse_sink(name: str, sink: object, what: str = "query") -> None:
    """Raise where a sink is named for a query or a stream of an engine that has no checkpoint."""
    if sink is not None:
        raise InputError(
            "an engine in memory has no sinks",
            place=f"{what} {name}",
            remedy="use the results that push returns, or give the engine a checkpoint",
        )


def _tables(result: StepResult) -> Mapping[JobOutput, pa.Table]:
    kinds = {RESULTS: result.results, LATE: result.late, DEAD_LETTERS: result.dead_letters}
    kinds[REJECTED] = result.rejected
    return {JobOutput(kind, name): table for kind, tables in kinds.items() for name, table in tables.items()}


@dataclass
class StagedResults:
    """Writes each piece of an answer to a file of its own, as a `PieceWriter`, named in the order of the pieces.

    `manifest` is the one that the step runs by, `before` the last step's. `reach` is called at each named point of a
    step, at which a test may have the process killed.
    """

    outputs: Outputs
    before: Manifest
    manifest: Manifest
    attempt: str
    reach: Callable[[str, int], None]
    files: list[OutputFile] = field(default_factory=list)

    @cached_property
    def queries(self) -> Set[str]:
        """Those whose answers nobody reads within the job."""
        return unread(self.manifest)

    @cached_property
    def _staging(self) -> Mapping[JobOutput, Staging]:
        return self.outputs.stage(self.before, self.outputs.named(self.manifest))

    @property
    def sizes(self) -> PieceSizes:
        """Return the sizes of pieces."""
        return piece_writer.SIZES

    def put(self, query: str, rows: pa.Table) -> None:
        """Stage some rows."""
        staging, unsynced = self._staging[JobOutput(RESULTS, query)], self.outputs.folders.unsynced
        if unsynced is not None:
            staging = staging.synced_with(unsynced)
        file = staging.write(f"rows-{self.attempt}-{len(self.files):05d}", rows)
        self.files.append(OutputFile(RESULTS, query, file, rows.num_rows))
        if len(self.files) > 1:
            self.reach(AMID_PIECES, self.manifest.step)
