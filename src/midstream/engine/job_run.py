"""A job file run by an embedded engine: what is new in its folders, step by step."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self

import pyarrow as pa

from midstream.checkpoint.folders import Folders
from midstream.engine.durable import READ
from midstream.engine.engine import Engine
from midstream.engine.file_source import FileSource
from midstream.engine.folder_source import FolderSource
from midstream.engine.kafka_source import KafkaSource
from midstream.engine.results_source import ResultsSource
from midstream.engine.table_source import table_rows
from midstream.job.calibration_file import with_unit_costs
from midstream.job.commits import STEPS_BETWEEN_TIDYINGS
from midstream.job.patience import PATIENCE, Patience
from midstream.job.reconcile import refuse_other_streams
from midstream.job.stopwatch import Stopwatch
from midstream.language.duration import parse_duration
from midstream.language.job_file import JobFile
from midstream.language.job_specs import OF_A_JOB, SourceSpec
from midstream.state.store.places import located
from midstream.step.reviewing.settings import declared_optimizer

_GRAIN = 0.05
"""How often, in seconds, somebody who waits looks whether he shall stop."""


class FileJob:
    """The job of a job file, in this process: its streams are files, its queries run in an `Engine`.

    Which files a step reads its manifest says: so each file is read exactly once, whatever is killed and when. Before
    the next step that is noted beside the manifests, of which only the last few stay. No two attempts at a step write
    one note, so none that arrives late changes what was read. Raises a `MidstreamError` for what only Spark can do.
    """

    def __init__(self, file: JobFile, *, take_over: bool = False, threads: int | None = None) -> None:
        folders = self._folders = Folders(located(file.checkpoint))
        newest = folders.manifests.latest()
        known = {} if newest is None else {name: stream.columns for name, stream in newest.pushed_streams.items()}
        if known:
            refuse_other_streams(known, file.streams, folders.root)
        self._sources = {name: source_of(name, spec, known.get(name)) for name, spec in file.streams.items()}
        self._notes = {name: folders.sources(name) for name in file.streams}
        self._stepped = False
        self._took: float | None = None
        self._interval: float | None = None
        self._patience = PATIENCE if file.patience is None else parse_duration(file.patience)
        self._engine = Engine(
            sharing=file.sharing, lanes=file.lanes, checkpoint=file.checkpoint, take_over=take_over, threads=threads
        )
        try:
            self._declare(file)
            self._read = self._files_read()
        except BaseException as error:
            self._engine.close(error)
            raise
        self._noted = -1

    @property
    def engine(self) -> Engine:
        """What runs the queries."""
        return self._engine

    def step(self) -> bool:
        """Do a step if there are new files or commands for it, and return whether there were."""
        watch = Stopwatch()
        waiting = {name: source.waiting(self._read[name]) for name, source in self._sources.items()}
        found = {name: files[: self._sources[name].most] for name, files in waiting.items()}
        if not any(found.values()) and not self._engine.waits:
            return False
        tables = {name: self._sources[name].read(files) for name, files in found.items() if files}
        self._note_newest()
        read = {name: files for name, files in found.items() if files}
        number, begun, took = self._engine.manifest.step + 1, time.monotonic(), self._took
        backlog = {
            f"{name}{part}": count
            for name, files in waiting.items()
            for part, count in self._sources[name].backlog(files, found[name]).items()
        }
        watch.lap("read")
        try:
            self._engine.push(
                tables, took=took, interval=self._interval, read=read, backlog=backlog, watch=watch, returns=False
            )
        finally:
            self._took = time.monotonic() - begun
            if self._engine.manifest.step == number:  # Also where a sink did not take the results.
                for name, files in found.items():
                    self._read[name].update(dict.fromkeys(files, number))
        if number % STEPS_BETWEEN_TIDYINGS == 0:
            self._folders.manifests.epochs.check(self._engine.manifest.epochs[-1].number)
            self._forget_files()
        return True

    def run(self, interval: float | None, stopping: Callable[[], bool], told: Callable[[Patience], None]) -> None:
        """Do steps until there is nothing more to do.

        With an `interval` in seconds, until it is `stopping`, or until `midstream stop` asks for it. A step that fails
        for a reason outside is repeated as long as `patience` allows. `told` is called now and then.
        """
        patience, self._interval = Patience(self._patience, stopping), interval or None
        while not stopping():
            begun = time.monotonic()
            patience.do(self._engine.manifest.step + 1, self._step)
            told(patience)
            if self._engine.stop_requested or (interval is None and not self._stepped):
                return
            while interval is not None and time.monotonic() < begun + interval and not stopping():
                time.sleep(min(_GRAIN, interval))

    def _step(self) -> None:
        self._stepped = self.step()

    def close(self, failure: BaseException | None = None) -> None:
        """Release the checkpoint, which notes a `failure`, and close the sources."""
        self._engine.close(failure)
        for source in self._sources.values():
            source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, failure: BaseException | None, *_: object) -> None:
        self.close(failure)

    def _declare(self, file: JobFile) -> None:
        for name, spec in file.streams.items():
            columns = self._sources[name].columns
            self._engine.create_stream(
                name, columns, spec.timestamp, spec.lateness, spec.idle_timeout, spec.unit, spec.max_ahead
            )
        for name, table in file.tables.items():
            self._engine.table(name, table_rows(name, table))
        declared = self._engine.manifest.published["declared"]["queries"]
        shown = self._engine.report()
        for name in declared.keys() - file.queries.keys():
            if name in shown.queries or name in shown.refused:
                self._engine.drop_query(name)
        for name, query in file.queries.items():
            self._engine.add_query(name, **query.arguments())
        self._engine.declare_optimizer(declared_optimizer(with_unit_costs(file)))

    def _files_read(self) -> dict[str, dict[str, int]]:
        # By stream each file with the step that read it, or a later one.
        newest = self._engine.manifest
        return {
            name: dict.fromkeys(newest.published.get(READ, {}).get(name, ()), newest.step)
            | log.by_file(newest.time_line, newest.step)
            for name, log in self._notes.items()
        }

    def _note_newest(self) -> None:
        # Another manifest is about to replace the newest one, which has the note so far.
        newest = self._engine.manifest
        if newest.step == self._noted:
            return
        for name, log in self._notes.items():
            files = newest.published.get(READ, {}).get(name, ())
            if not self._read[name].keys().isdisjoint(files):  # Otherwise they are forgotten already.
                log.write(newest.step, newest.time_line, files)
        self._noted = newest.step

    def _forget_files(self) -> None:
        # Notes of files that will not be found again are removed, so that the log does not grow for ever. A step's note
        # goes as a whole, once none of its files need be known any more.
        line = self._engine.manifest.time_line
        kept = {*self._folders.manifests.steps(), *(one.step for one in self._folders.savepoints.all().values())}
        for name, read in self._read.items():
            forgettable = self._sources[name].forgettable(read, kept)
            needed = {step for file, step in read.items() if file not in forgettable}
            gone = set(read.values()) - needed
            self._notes[name].forget(line, gone)
            self._read[name] = {file: step for file, step in read.items() if step not in gone}


def source_of(name: str, spec: SourceSpec, known: pa.Schema | None) -> FileSource:
    """Make the source of a stream of a job file; `known` are its columns where it ran before."""
    if spec.format == "kafka":
        return KafkaSource.of(name, spec)
    return ResultsSource.of(name, spec) if spec.format == OF_A_JOB else FolderSource.of(name, spec, known)
