"""The embedded engine: the fold in this process, in memory or on a checkpoint, and the shortest way in."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from os import PathLike
from types import MappingProxyType
from typing import Any, Self

import pyarrow as pa

from midstream.admission.refused_rows import ROWS_KEPT, appended, by_name, of_queries
from midstream.checkpoint.folders import DEAD_LETTERS, LATE
from midstream.checkpoint.saved_engine import load_engine, save_engine
from midstream.commands.add_query import AddQuery, with_refused
from midstream.commands.base import taken
from midstream.commands.change_query import ChangeQuery
from midstream.commands.controls import Controls
from midstream.commands.drop_query import DropQuery
from midstream.commands.rescale import check_lanes
from midstream.dashboard.server import ShowsDashboard
from midstream.embedded.durable import EngineCheckpoint, refuse_if_closed, refuse_sink
from midstream.embedded.file_source import FileSource
from midstream.embedded.processes import InProcesses, Workers, workers_of
from midstream.embedded.sources import Sources, source_of
from midstream.expr.duration import stream_duration
from midstream.migration.strategy_contract import strategies
from midstream.model.codec import encode
from midstream.model.command import Command
from midstream.model.errors import PASSING, InputError, UndeliveredError, fault_located
from midstream.model.events import EVENTS_KEPT, CommandRefused, Event
from midstream.model.lane_choice import StepTiming
from midstream.model.manifest import DEFAULT_SHARING, Manifest
from midstream.model.optimization import OptimizerSettings
from midstream.model.schema import StreamSchema
from midstream.model.step_time import StepTime, StepUnderWay
from midstream.optimizer.policies.policy_contract import policies
from midstream.pipeline.frames import Rows, tables_of
from midstream.pipeline.journal import log_command, log_failure, log_step
from midstream.pipeline.lost_rows import Source, warn_of_lost_rows
from midstream.pipeline.reconcile import optimized, redeclared, settings, tabled, with_declared, with_stream
from midstream.pipeline.reported import Reported
from midstream.pipeline.static_tables import TableControl, set_table
from midstream.pipeline.step_times import StepTimes, Stopwatch, check_figures, timed
from midstream.pipeline.waiting_commands import WaitingCommands, is_in
from midstream.sharing.schemes.scheme_contract import scheme
from midstream.sinks import Sink, SinkFunction, as_sink
from midstream.sql.ddl import columns_of
from midstream.sql.job_specs import SourceSpec
from midstream.state.chunk_store import ChunkStore
from midstream.state.memory_store import MemoryStore
from midstream.step.dealt_rows import Each
from midstream.step.fold import OpenPieces, StepResult, step
from midstream.step.plan_step import plan_step
from midstream.storage.memory_limit import MemoryLimit
from midstream.storage.sweep import listed
from midstream.storage.write_back import WriteBackStore

NEEDED = 8
"""A step takes so many times the bytes of its rows at least: they are stored, and sorted for each join."""

Check = Callable[[Manifest], None]
Change = Callable[[Manifest], Manifest]


class Engine(Controls[None], TableControl[None], Reported, ShowsDashboard):
    """Continuous queries over pushed tables, in this process.

    Every call of `push` is one step. Queries, migrations and drops take effect with the next step; what is wrong with
    them is raised at once as a `MidstreamError`, and nothing has changed then. `sharing` is how queries that join the
    same streams by the same predicates share the work: `auto`, `mem_opt`, `cpu_opt`, `pull_up`, `push_down`, or `off`,
    which gives every query states of its own. `lanes` is how many shares the state is spread over; they run in as many
    `threads` as there are cores, or as are given. More than 8 lanes, and more than threads, are held as one by thread.

    With a `checkpoint`, a path or a URL such as `s3://bucket/job`, a push is committed there before it returns: what it
    returned is in each query's sink exactly once, and a push that was cut short is there as a whole or not at all, as
    the number of the step in `manifest` tells. An engine that is opened on a checkpoint goes on where that one stopped,
    with its streams and queries; to declare them again is not an error, and where they differ they are changed as a
    restarted job's are. `midstream status`, `migrate` and the rest work on it; commands are taken with the next push.
    One engine at a time: where another process has the checkpoint and may still run, `HeldCheckpointError` is raised,
    unless it is to `take_over`. Without `durable` the last seconds may be lost with the machine's power. `close` it, or
    use it as a context manager.

    With a checkpoint, `memory` such as "4 GB" limits what this process holds, mapped files not counted: near the limit
    all of the state is mapped from the checkpoint's files. A push that would need more raises an `InputError`, and
    nothing has changed then.

    With a checkpoint, without `memory` and on Linux, the lanes of large steps may run in `workers`: so many processes
    that use all cores of a machine. "auto" is one for each core, and threads where there can be no workers. A new
    checkpoint then has as many lanes as workers, unless `lanes` is given. The page "Size a job" says when to use them.

    >>> engine = Engine()
    >>> engine.create_stream("A", "k BIGINT, ts TIMESTAMP", timestamp="ts")
    >>> engine.create_stream("B", "k BIGINT, ts TIMESTAMP", timestamp="ts")
    >>> engine.add_query("pairs", "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 20 SECONDS")
    >>> rows = pa.table({"k": [1, 2], "ts": pa.array([0, 1], pa.timestamp("us"))})
    >>> engine.push({"A": rows, "B": rows.slice(1)})["pairs"].to_pylist()
    [{'k': 2}]
    """

    def __init__(
        self,
        seed: int = 0,
        sharing: str | None = None,
        lanes: int | None = None,
        *,
        checkpoint: str | PathLike[str] | None = None,
        take_over: bool = False,
        durable: bool = True,
        threads: int | None = None,
        memory: str | int | None = None,
        workers: int | str | None = None,
    ) -> None:
        self._limit = MemoryLimit.of(memory, "Engine")
        if self._limit is not None and checkpoint is None:
            raise InputError(
                "an engine in memory cannot have a memory limit",
                place="Engine",
                remedy='give the engine a checkpoint: Engine(checkpoint="ckpt")',
            )
        scheme(DEFAULT_SHARING if sharing is None else sharing, "Engine")
        check_lanes(1 if lanes is None else lanes)
        # They load with the engine, not amid a step.
        strategies()
        policies()
        processes = workers_of(workers, checkpoint=checkpoint is not None, limited=self._limit is not None)
        self._manifest = Manifest(seed=seed, sharing=sharing or DEFAULT_SHARING, lanes=lanes or processes or 1)
        self._ahead: Manifest | None = None
        self._events: deque[Event] = deque(maxlen=EVENTS_KEPT)
        self._refusals: list[Event] = []
        self._logged: list[Command] = []
        self._warned: set[Source] = set()
        self._late, self._dead = dict[str, pa.Table](), dict[str, pa.Table]()
        self._processes = None if processes is None else Workers(processes)
        self._threads = threads_of(threads)
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="midstream")
        self._each: Each = partial(in_threads, self._pool)
        side_by_side = processes or self._threads
        self._timing = StepTiming(side_by_side, threads=side_by_side)
        self._declared: set[str] = set()
        self._closed = False
        self._checkpoint: EngineCheckpoint | None = None
        self._sources: Sources | None = None
        self._store: MemoryStore | WriteBackStore = MemoryStore()
        self._times = StepTimes()
        if checkpoint is not None:
            self._checkpoint = EngineCheckpoint(checkpoint, durable=durable, take_over=take_over, limit=self._limit)
            self._store, self._times = self._checkpoint.store, self._checkpoint.times
            self._manifest = self._checkpoint.open(self._manifest)
            try:
                self._command(*settings(self._manifest, lanes, sharing))
                self._change(with_declared(self._manifest, lanes=lanes, sharing=sharing))
            except BaseException:
                self.close()
                raise

    def create_stream(
        self,
        name: str,
        schema: pa.Schema | str,
        timestamp: str,
        lateness: str | int = 0,
        idle_timeout: str | int | None = None,
        unit: str | None = None,
        max_ahead: str | int | None = None,
        dead_letters: Sink | Mapping[str, Any] | None = None,
    ) -> None:
        """Declare a stream; `schema` is an Arrow schema or SQL DDL text, durations are strings or microseconds.

        An integer timestamp has a `unit`: it counts "s", "ms", "us" or "ns" since 1970. A row that is more than
        `max_ahead` ahead of all rows of the steps before it is a dead letter: a wrong clock makes no right row late.
        """
        refuse_if_closed(self._closed)
        columns = columns_of(schema)
        idle = None if idle_timeout is None else stream_duration(name, "idle_timeout", idle_timeout)
        late = stream_duration(name, "lateness", lateness)
        ahead = None if max_ahead is None else stream_duration(name, "max_ahead", max_ahead)
        stream = StreamSchema(name, columns, timestamp, late, idle, unit, max_ahead=ahead).in_unit()
        dropped = self._checkpoint.dropped_next if self._checkpoint is not None and name not in self._declared else None
        if self._checkpoint is None:
            refuse_sink(name, dead_letters, "stream")
        elif dead_letters is not None:
            self._checkpoint.name_dead_letters(name, as_sink(dead_letters, ""))
        self._change(with_stream(self._manifest, stream, self._upcoming, dropped))
        self._declared.add(name)

    def source(
        self,
        name: str,
        format: str,
        timestamp: str,
        schema: str | None = None,
        lateness: str | int = 0,
        idle_timeout: str | int | None = None,
        unit: str | None = None,
        max_ahead: str | int | None = None,
        *,
        path: str | None = None,
        value: str | None = None,
        options: Mapping[str, str] | None = None,
        on_bad_file: str = "stop",
        on_data_loss: str = "stop",
        dead_letters: Sink | Mapping[str, Any] | None = None,
    ) -> None:
        """Declare a stream that `pull` reads: the messages of a topic, the files of a folder, another job's results.

        All that a job file's table `[streams.NAME]` has, by the same names; other packages may bring further formats.
        The engine needs a checkpoint, which knows what was read.

        >>> engine.source("orders", "kafka", "ts", "id BIGINT, ts TIMESTAMP", value="json",
        ...               options={"kafka.bootstrap.servers": "broker:9092", "subscribe": "orders"})  # doctest: +SKIP
        """
        given = {key: str(one) for key, one in (options or {}).items()}
        spec = SourceSpec(
            format, path, schema, timestamp, options=given, value=value, unit=unit, on_bad_file=on_bad_file,
            on_data_loss=on_data_loss,
        )  # fmt: skip
        known = self._manifest.pushed_streams.get(name)
        source = source_of(name, spec, None if known is None else known.columns)
        self.declare_source(name, source, timestamp, lateness, idle_timeout, unit, max_ahead, dead_letters)

    def declare_source(
        self,
        name: str,
        source: FileSource,
        timestamp: str,
        lateness: str | int = 0,
        idle_timeout: str | int | None = None,
        unit: str | None = None,
        max_ahead: str | int | None = None,
        dead_letters: Sink | Mapping[str, Any] | None = None,
    ) -> None:
        """Declare a stream that `pull` reads from a source which is made already."""
        if self._checkpoint is None:
            raise InputError(
                "an engine in memory cannot record how far it has read a source",
                place=f"stream {name}",
                remedy='give the engine a checkpoint: Engine(checkpoint="ckpt")',
            )
        self.create_stream(name, source.columns, timestamp, lateness, idle_timeout, unit, max_ahead, dead_letters)
        if self._sources is None:
            self._sources = Sources(self, self._checkpoint.folders)
        self._sources.add(name, source)

    def pull(self, *, interval: float | None = None, returns: bool = True) -> dict[str, pa.Table] | None:
        """Do one step of what waits at the sources, if anything does, or if commands wait.

        What is read is in the manifest of the step: so each message and each file is read once. The arguments are those
        of `push`.

        Returns: what `push` does, or None if there was nothing to do.
        """
        refuse_if_closed(self._closed)
        if self._sources is None:
            return self.push(interval=interval, returns=returns) if self.waits else None
        results = self._sources.step(interval, returns=returns)
        if results is None and self._checkpoint is not None:
            self._checkpoint.settle()
        return results

    def declare_optimizer(self, declared: Mapping[str, OptimizerSettings]) -> None:
        """Set what a job file says of the optimizer, by query, or ("") for queries without settings of their own.

        What it said when the checkpoint was opened last is not set again: a command may have changed it since.
        """
        self._command(*optimized(self._manifest, declared), declares=partial(with_declared, optimizer=declared))

    def push(
        self,
        tables: Mapping[str, Rows] | None = None,
        *,
        took: float | None = None,
        interval: float | None = None,
        read: Mapping[str, Sequence[str]] | None = None,
        backlog: Mapping[str, int] | None = None,
        watch: Stopwatch | None = None,
        returns: bool = True,
    ) -> dict[str, pa.Table]:
        """Do one step: rows in by stream, results out by query, each in order of result time.

        Rows are an Arrow table, batch or reader, a frame of pandas or Polars, or a list of dicts; results Arrow tables.

        If you push at an `interval`, you may give it in seconds, with the seconds that the push before `took`: by these
        the optimizer judges the number of lanes. A `backlog` by stream, and the `watch` that has run while the rows
        were read, go into the step's `times`.

        A step that fails fails whole: nothing of it is kept, and the same or other rows can be pushed next. If it would
        not have failed without a query that this program adds or changes, that waits on too: mend what it failed by and
        push again, or drop the query. Any other such command, and one from the log, is refused, so that it does not
        block all later steps. What fails by no fault of the user's is an `InternalError`; it says what to report.

        On a checkpoint, what cannot be written there fails the step as well, whole. Only an `UndeliveredError` says
        that the step is committed: its rows must not be pushed again, and its results, which a sink did not take, come
        first with the next push. What the rows were `read` from, by stream, is in the `published` of the step's
        manifest: so the next process knows it exactly. Unless it `returns` them, results go to sinks only, and many of
        them piece by piece.
        """
        refuse_if_closed(self._closed)
        check_figures(took, interval, backlog)  # A failure after the commit would have the rows pushed again.
        place, given = partial("step {}".format, self._manifest.step + 1), tables_of(tables, self._manifest.streams)
        if self._limit is not None:
            needed = NEEDED * sum([rows.nbytes for rows in given.values()])
            self._limit.claim(needed, f"a push of {sum([rows.num_rows for rows in given.values()]):,} rows")
        watch, self._timing = watch or Stopwatch(), self._timing.after(took, interval)
        if self._sources is not None:
            self._sources.note_newest()
        waiting = None
        if self._checkpoint is not None:
            waiting = self._take_up(self._checkpoint)
            watch.lap("read")
        self._times.begin(self._manifest.step + 1, sum([rows.num_rows for rows in given.values()]))
        try:
            try:
                with fault_located(place):
                    pieces = None if returns or self._checkpoint is None else self._checkpoint.pieces(self._manifest)
                    result = self._step(given, self._given(waiting), waiting, pieces)
            except Exception as error:
                log_failure(error, self._manifest.step + 1, self._manifest.job)
                self._refuse_culprits(given, error, waiting)
                raise
            watch.lap("fold")
            with fault_located(place):
                happened = self._keep(result, read, watch)
        except BaseException:
            self._times.end()
            raise
        finally:
            self._store.retain(set(listed(self._manifest)))
        try:
            if self._checkpoint is not None:
                with watch.phase("sinks"):
                    # A step of which something is returned is in its sinks before that.
                    aside = not returns and self._sources is not None and self._sources.goes_on
                    self._checkpoint.deliver(self._manifest, aside=aside)
        finally:
            time = timed(self._manifest, happened, watch, interval, backlog)
            self._times.note(time)
            log_step(time, happened, self._manifest.job)
            if returns:  # Otherwise `midstream run` says it in its own way.
                warn_of_lost_rows(happened, self._warned, "engine.late and engine.dead_letters")
        results = result.results if returns else {}
        return {name: rows for name, rows in results.items() if not self._manifest.queries[name].part}

    @property
    def times(self) -> tuple[StepTime, ...]:
        """What the newest 500 steps took since the engine was made or opened, by phase, oldest first."""
        return self._times.newest

    @property
    def under_way(self) -> StepUnderWay | None:
        """The step that another thread is doing; None between two pushes."""
        return self._times.under_way

    @property
    def waits(self) -> bool:
        """Whether something waits for the next step: commands, or results that a sink has not taken."""
        return bool(self._manifest.pending or (self._checkpoint and self._checkpoint.waits(self._manifest)))

    @property
    def manifest(self) -> Manifest:
        """The state after the last step, as a frozen value."""
        return self._manifest

    @property
    def events(self) -> tuple[Event, ...]:
        """What happened since the engine was made or opened, in order: the newest `EVENTS_KEPT` events."""
        return tuple(self._events)

    @property
    def late(self) -> Mapping[str, pa.Table]:
        """Per stream the rows that arrived too late, with the `_watermark` they missed.

        Without a checkpoint they are in memory, where the newest 100,000 of a stream stay; `RowsLate` counts all.
        """
        return MappingProxyType(self._rejected(LATE, self._late))

    @property
    def dead_letters(self) -> Mapping[str, pa.Table]:
        """By stream what could not be read, by query what not evaluated, with the `_reason`; as many as of `late`.
        Where there is a stream `A`, those of a query `A` are under `query A`."""
        return MappingProxyType(by_name(self._rejected(DEAD_LETTERS, self._dead), self._manifest.streams))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the engine to a folder: a new one, or one of a saved engine, which is replaced. No other is touched."""
        alone = replace(self._manifest, job="", epochs=())
        save_engine(path, alone, self._store, self.events, self.late, self.dead_letters)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Engine:
        """Load the engine that was saved in a folder."""
        engine = cls()
        loaded = load_engine(path, engine._store)
        engine._manifest, engine._late, engine._dead = loaded.manifest, dict(loaded.late), dict(loaded.dead_letters)
        engine._events.extend(loaded.events)
        return engine

    def close(self, failure: BaseException | None = None) -> None:
        """Release the checkpoint, which notes a `failure`, and end the threads; the engine can still be looked at.

        Raises `UndeliveredError` where a sink does not take the newest step, which it was given while others were done.
        """
        self._closed = True
        if self._sources is not None:
            self._sources.close()
        try:
            if self._checkpoint is not None:
                self._checkpoint.settle()
        except UndeliveredError as error:
            if failure is None:  # Otherwise that one is raised.
                failure = error
                raise
        finally:
            if self._checkpoint is not None:
                self._checkpoint.close(failure, self._manifest)
            self._pool.shutdown()
            if self._processes is not None:
                self._processes.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, failure: BaseException | None, *_: object) -> None:
        self.close(failure)

    def _checkpoint_url(self) -> str | None:
        return None if self._checkpoint is None else self._checkpoint.folders.root

    def _set_table(self, name: str, rows: Rows) -> None:
        refuse_if_closed(self._closed)
        store = self._store if self._checkpoint is None else self._checkpoint.tables
        table = set_table(name, rows, self._upcoming().tables, store, self._manifest.step)
        first = self._checkpoint is not None and f"table {name}" not in self._declared
        commands = tabled(self._manifest, {name: table}) if first else (table,)
        self._command(*commands, declares=partial(with_declared, table=table) if first else lambda it: it)
        self._declared.add(f"table {name}")

    def _add(self, query: AddQuery, sink: Sink | SinkFunction | Mapping[str, Any] | None) -> None:
        name = query.query
        if self._checkpoint is None:
            refuse_sink(name, sink)
            self._command(query)
            return
        meant = self._checkpoint.folders.sink(name, sink)
        query = query.like(sink=meant.to_json())
        commands = (query,) if f"query {name}" in self._declared else redeclared(self._upcoming(), query)
        checks = partial(self._checkpoint.name_sink, name, meant, self._manifest)
        self._command(*commands, checks=checks, declares=partial(with_declared, query=query))
        self._declared.add(f"query {name}")

    def _command(self, *commands: Command, checks: Check = lambda _: None, declares: Change = lambda it: it) -> None:
        refuse_if_closed(self._closed)
        ahead = self._upcoming()
        for command in commands:
            with fault_located(partial("command {}".format, command.kind)):
                ahead = taken(ahead, command)
            if isinstance(command, DropQuery) and self._checkpoint is not None:
                declares = partial(with_declared, dropped=command.query)
        checks(ahead)
        self._change(declares(replace(self._manifest, pending=(*self._manifest.pending, *commands))))
        self._ahead = declares(ahead)
        for one in commands:
            log_command(one, self._manifest.step, None, self._manifest.job)

    def _change(self, manifest: Manifest) -> None:
        # Also when something is declared or commanded between two steps.
        self._manifest = manifest if self._checkpoint is None else self._checkpoint.declare(manifest)
        self._ahead = None

    def _take_up(self, checkpoint: EngineCheckpoint) -> WaitingCommands:
        self._manifest = checkpoint.begin(self._manifest)
        if not checkpoint.is_sending:
            checkpoint.finish(self._manifest)
        waiting = WaitingCommands(checkpoint.outputs, self._manifest)
        if self._given(waiting):
            checkpoint.settle()
        checkpoint.reach("before_job", self._manifest.step + 1)
        return waiting

    def _given(self, waiting: WaitingCommands | None) -> tuple[Command, ...]:
        return self._manifest.pending if waiting is None else (*self._manifest.pending, *waiting.commands)

    def _step(
        self,
        tables: Mapping[str, pa.Table],
        commands: Sequence[Command],
        waiting: WaitingCommands | None = None,
        pieces: OpenPieces | None = None,
    ) -> StepResult:
        manifest, refuse = (self._manifest, None) if waiting is None else (waiting.manifest, waiting.refuse)
        if self._processes is None or self._checkpoint is None:
            return step(manifest, tables, commands, self._store, self._each, self._timing, pieces, refuse)
        lanes = InProcesses(self._processes, self._each, self._checkpoint.writes(self._manifest), kept=pieces is None)
        deaths, result = self._processes.deaths, None
        try:
            result = step(manifest, tables, commands, self._store, lanes, self._timing, pieces, refuse)
            return result
        finally:
            broken_off = result is None or self._processes.deaths > deaths
            self._checkpoint.take_staged(lanes.files, lanes.staged, again=broken_off)

    def _keep(
        self, result: StepResult, read: Mapping[str, Sequence[str]] | None, watch: Stopwatch
    ) -> tuple[Event, ...]:
        # Where there is a checkpoint, the step becomes the engine's state only once it is committed.
        events = (*self._refusals, *result.events)
        if self._checkpoint is None:
            late = appended(self._late, result.late, ROWS_KEPT)
            dead = appended(self._dead, {**result.dead_letters, **of_queries(result.rejected)}, ROWS_KEPT)
            self._manifest, self._late, self._dead = result.manifest, late, dead
        else:
            self._manifest = self._checkpoint.commit(self._manifest, result, events, self._pool, watch, read)
        self._ahead, self._refusals, self._logged = None, [], []
        self._events.extend(result.events)
        return events

    def _rejected(self, kind: str, kept: dict[str, pa.Table]) -> dict[str, pa.Table]:
        return kept if self._checkpoint is None else self._checkpoint.rejected(kind, self._manifest)

    def _shown(self) -> Manifest:
        # The commands that wait for the next step are shown as done.
        return self._upcoming() if self._manifest.pending else self._manifest

    def _stored(self) -> tuple[Manifest, ChunkStore]:
        return self._manifest, self._store

    def _refuse_culprits(
        self, tables: Mapping[str, pa.Table], error: Exception, waiting: WaitingCommands | None
    ) -> None:
        # A command is refused only if the step fails with it, and not without, by no fault that may pass. What this
        # program declares of its queries waits on, and is noted as refused until it runs. If none is found, the
        # commands of the log stay there for the next step.
        given, refused = self._given(waiting), [] if waiting is None else waiting.refused
        admitted = [one for one in given if not is_in(one, [command for command, _ in refused])]
        innocent, guilty = culprits(admitted, error, partial(self._step, tables))
        if not guilty:
            return
        manifest = self._manifest if waiting is None else waiting.manifest
        self._logged += () if waiting is None else waiting.commands
        kept = [one for one in guilty if isinstance(one, AddQuery | ChangeQuery) and not is_in(one, self._logged)]
        for command, reason in [*refused, *((one, str(error)) for one in guilty)]:
            manifest = with_refused(manifest, command, manifest.step + 1, reason)
            if not is_in(command, kept):
                self._refusals.append(CommandRefused(manifest.step + 1, encode(command), reason))
                self._events.append(self._refusals[-1])
        pending = tuple(one for one in given if is_in(one, innocent) or is_in(one, kept))
        self._change(replace(manifest, pending=pending))

    def _upcoming(self) -> Manifest:
        # Each command is taken once.
        if self._ahead is None:
            self._ahead = plan_step(self._manifest, self._manifest.pending).manifest
        return self._ahead


def culprits(
    waiting: Sequence[Command], error: Exception, step: Callable[[Sequence[Command]], object]
) -> tuple[list[Command], list[Command]]:
    """Separate the waiting commands with which a step fails, and not without, from the others, which come first.

    `step` tries the step with some of them. Where the fault may pass, or is not theirs, all wait on.
    """
    innocent, guilty = list[Command](), list[Command]()
    if not waiting or isinstance(error, PASSING):
        return list(waiting), []
    try:
        if not _succeeds(step, ()):
            return list(waiting), []
        for command in waiting:
            if _succeeds(step, (*innocent, command)):
                innocent.append(command)
            else:
                guilty.append(command)
    except PASSING:
        return list(waiting), []
    return innocent, guilty


def _succeeds(step: Callable[[Sequence[Command]], object], commands: Sequence[Command]) -> bool:
    try:
        step(commands)
    except PASSING:
        raise
    except Exception:
        return False
    return True


def threads_of(threads: int | None) -> int:
    """Return how many threads an engine has; raises unless that is a whole number, or None for one by core."""
    if threads is not None and (not isinstance(threads, int) or isinstance(threads, bool) or threads < 1):
        raise InputError(
            f"an engine cannot have {threads!r} threads", place="threads", remedy="use 1 or more, or leave threads out"
        )
    return threads or os.cpu_count() or 1


def in_threads(pool: Executor, do: Callable[[Any], Any], items: Sequence[Any]) -> Sequence[Any]:
    """Call a function for each item, in threads where there are several; all have ended when it fails."""
    if len(items) < 2:
        return [do(item) for item in items]
    doing = [pool.submit(do, item) for item in items]
    wait(doing)
    return [one.result() for one in doing]
