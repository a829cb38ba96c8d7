"""What the streams of an engine are read from: an open set of sources, and what of each was read.

In: streams as job files and programs declare them. Out: steps of what waits at their sources, each row once.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import NamedTuple, Protocol

import pyarrow as pa

from midstream.checkpoint.event_log import FilesRead
from midstream.checkpoint.folders import Folders
from midstream.embedded.file_source import FileSource
from midstream.model.discovery import kinds
from midstream.model.manifest import Manifest
from midstream.pipeline.commits import STEPS_BETWEEN_TIDYINGS
from midstream.pipeline.step_times import Stopwatch
from midstream.sql.job_specs import SourceSpec

ENTRY_POINTS = "midstream.sources"
"""The group of entry points by which another package brings a source for the embedded engine."""


def source_kind(format: str) -> type[FileSource]:
    """Return the class of sources of a format: the one of this name, or that of files."""
    known = kinds(sys.modules["midstream.embedded"], FileSource, ENTRY_POINTS)
    return known.get(format, known["files"])


def source_of(name: str, spec: SourceSpec, known: pa.Schema | None) -> FileSource:
    """Return the source of a stream; `known` are its columns where it ran before."""
    return source_kind(spec.format).of(name, spec, known)


class Pushed(Protocol):
    """What of an engine its sources need."""

    @property
    def manifest(self) -> Manifest:
        """The state after the last step."""

    @property
    def waits(self) -> bool:
        """Whether something else waits for the next step."""

    def push(
        self,
        tables: Mapping[str, pa.Table],
        *,
        took: float | None,
        interval: float | None,
        read: Mapping[str, Sequence[str]],
        backlog: Mapping[str, int],
        watch: Stopwatch,
        returns: bool,
    ) -> dict[str, pa.Table]:
        """Do one step."""


class _Asked(NamedTuple):
    """The files that wait at a source, those that a step takes, the rows of these, and how many wait on, by part."""

    waiting: tuple[str, ...]
    files: tuple[str, ...]
    rows: pa.Table | None
    backlog: Mapping[str, int]

    @staticmethod
    def of(source: FileSource, read: Collection[str]) -> _Asked:
        waiting = source.waiting(read)
        files = waiting[: source.most]
        return _Asked(waiting, files, source.read(files) if files else None, source.backlog(waiting, files))


class Sources:
    """The sources of an engine's streams, and which of their files its steps have read.

    Which files a step reads its manifest says: so each file is read exactly once, whatever is killed and when. Before
    the next step that is noted next to the manifests, of which only the last few stay. No two attempts at a step write
    one note, so none that arrives late changes what was read.

    While a step is done a source of which more waits is read for the next one. What was read so is used as it is once
    the step is committed; until then the step that is done again takes what it took before.
    """

    def __init__(self, engine: Pushed, folders: Folders) -> None:
        self._engine, self._folders = engine, folders
        # Of its own, so that a step never waits for a broker that is asked for the next one.
        self._pool = ThreadPoolExecutor(thread_name_prefix="midstream-sources")
        self._kept: dict[str, _Asked] = {}
        self._ahead: dict[str, Future[_Asked]] = {}
        self._sources: dict[str, FileSource] = {}
        self._notes: dict[str, FilesRead] = {}
        self._read: dict[str, dict[str, int]] = {}
        self._noted = -1
        self._took: float | None = None

    def add(self, name: str, source: FileSource) -> None:
        """Read a stream from a source from now on."""
        wait(self._ahead.values())
        self._kept.pop(name, None)
        self._ahead.pop(name, None)
        newest, log = self._engine.manifest, self._folders.sources(name)
        listed = newest.published.read.get(name, ())
        # Each file that was read, with the step that read it, or a later one.
        self._read[name] = dict.fromkeys(listed, newest.step) | log.by_file(newest.time_line, newest.step)
        self._sources[name], self._notes[name] = source, log

    def step(self, interval: float | None = None, *, returns: bool = False) -> dict[str, pa.Table] | None:
        """Do a step if there are new files or commands for it.

        Returns: what `push` does, or None if there was nothing to do.
        """
        watch = Stopwatch()
        asked = self._ask()
        read = {name: one.files for name, one in asked.items() if one.files}
        if not read and not self._engine.waits:
            return None
        number, begun = self._engine.manifest.step + 1, time.monotonic()
        tables = {name: one.rows for name, one in asked.items() if one.rows is not None}
        backlog = {f"{name}{part}": count for name, one in asked.items() for part, count in one.backlog.items()}
        watch.lap("read")
        self._read_ahead(asked)
        try:
            results = self._engine.push(
                tables, took=self._took, interval=interval, read=read, backlog=backlog, watch=watch, returns=returns
            )
        finally:
            self._took = time.monotonic() - begun
            if self._engine.manifest.step == number:  # Also where a sink did not take the results.
                self._kept = {}
                for name, files in read.items():
                    self._read[name].update(dict.fromkeys(files, number))
        if number % STEPS_BETWEEN_TIDYINGS == 0:
            self._folders.manifests.epochs.check(self._engine.manifest.epochs[-1].number)
            self._forget_files()
        return results

    def _ask(self) -> dict[str, _Asked]:
        """Read what the next step takes of each source, unless that was done while the last one was."""
        wait(self._ahead.values())  # No source is asked while it still answers.
        found = dict(self._kept)
        if not found:
            # Whether something waits now, or what failed then fails now, only the source can tell.
            done = {name: one.result() for name, one in self._ahead.items() if one.exception() is None}
            found, self._ahead = {name: one for name, one in done.items() if one.files}, {}
        # Each waits for a broker or a store, and none for another.
        asked = {
            name: self._pool.submit(_Asked.of, source, self._read[name])
            for name, source in self._sources.items()
            if name not in found
        }
        wait(asked.values())  # No source is asked while another still answers, even if one fails.
        found |= {name: one.result() for name, one in asked.items()}
        return {name: found[name] for name in self._sources}

    def _read_ahead(self, asked: Mapping[str, _Asked]) -> None:
        """Begin to read what the step after this one takes, where this one leaves something."""
        self._kept = {name: one for name, one in asked.items() if self._sources[name].ahead and one.files}
        self._ahead = {name: one for name, one in self._ahead.items() if name in self._kept}
        for name, one in self._kept.items():
            if name not in self._ahead and any(one.backlog.values()):
                read = {*self._read[name], *one.files}
                self._ahead[name] = self._pool.submit(_Asked.of, self._sources[name], read)

    @property
    def goes_on(self) -> bool:
        """Whether the next step is being read already."""
        return bool(self._ahead)

    def close(self) -> None:
        """Close what the sources hold open."""
        for source in self._sources.values():
            source.interrupt()
        self._pool.shutdown()
        for source in self._sources.values():
            source.close()

    def note_newest(self) -> None:
        """Note what the newest step has read, before another manifest takes the place of its own."""
        newest = self._engine.manifest
        if newest.step == self._noted:
            return
        for name, log in self._notes.items():
            files: Collection[str] = newest.published.read.get(name, ())
            if not self._read[name].keys().isdisjoint(files):  # Otherwise they are forgotten already.
                log.write(newest.step, newest.time_line, files)
        self._noted = newest.step

    def _forget_files(self) -> None:
        """Remove what was noted of files that will not be found again, so that the log does not grow forever.

        A step's note goes as a whole, once none of its files need be known any more.
        """
        line = self._engine.manifest.time_line
        kept = {*self._folders.manifests.steps(), *(one.step for one in self._folders.savepoints.all().values())}
        for name, read in self._read.items():
            forgettable = self._sources[name].forgettable(read, kept)
            needed = {step for file, step in read.items() if file not in forgettable}
            gone = set(read.values()) - needed
            self._notes[name].forget(line, gone)
            self._read[name] = {file: step for file, step in read.items() if step not in gone}
