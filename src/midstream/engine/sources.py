"""What the streams of an engine are read from: an open set of sources, and what of each was read.

In: streams as job files and programs declare them. Out: steps of what waits at their sources, each row once.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Executor, wait
from typing import Protocol

import pyarrow as pa

from midstream.checkpoint.event_log import FilesRead
from midstream.checkpoint.folders import Folders
from midstream.engine.file_source import FileSource
from midstream.job.commits import STEPS_BETWEEN_TIDYINGS
from midstream.job.step_times import Stopwatch
from midstream.language.job_specs import SourceSpec
from midstream.model.discovery import kinds
from midstream.model.manifest import Manifest

ENTRY_POINTS = "midstream.sources"
"""The group of entry points by which another package brings a source for the embedded engine."""


def source_kind(format: str) -> type[FileSource]:
    """Return the class of sources of a format: the one of this name, or that of files."""
    known = kinds(sys.modules["midstream.engine"], FileSource, ENTRY_POINTS)
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


class Sources:
    """The sources of an engine's streams, and which of their files its steps have read.

    Which files a step reads its manifest says: so each file is read exactly once, whatever is killed and when. Before
    the next step that is noted beside the manifests, of which only the last few stay. No two attempts at a step write
    one note, so none that arrives late changes what was read.
    """

    def __init__(self, engine: Pushed, folders: Folders, pool: Executor) -> None:
        self._engine, self._folders, self._pool = engine, folders, pool
        self._sources: dict[str, FileSource] = {}
        self._notes: dict[str, FilesRead] = {}
        self._read: dict[str, dict[str, int]] = {}
        self._noted = -1
        self._took: float | None = None

    def add(self, name: str, source: FileSource) -> None:
        """Read a stream from a source from now on."""
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
        # Each waits for a broker or a store, and none for another.
        asked = {name: self._pool.submit(one.waiting, self._read[name]) for name, one in self._sources.items()}
        wait(asked.values())  # Where one fails, another must not be asked again while it still answers.
        waiting = {name: one.result() for name, one in asked.items()}
        found = {name: files[: self._sources[name].most] for name, files in waiting.items()}
        if not any(found.values()) and not self._engine.waits:
            return None
        tables = {name: self._sources[name].read(files) for name, files in found.items() if files}
        read = {name: files for name, files in found.items() if files}
        number, begun = self._engine.manifest.step + 1, time.monotonic()
        backlog = {
            f"{name}{part}": count
            for name, files in waiting.items()
            for part, count in self._sources[name].backlog(files, found[name]).items()
        }
        watch.lap("read")
        try:
            results = self._engine.push(
                tables, took=self._took, interval=interval, read=read, backlog=backlog, watch=watch, returns=returns
            )
        finally:
            self._took = time.monotonic() - begun
            if self._engine.manifest.step == number:  # Also where a sink did not take the results.
                for name, files in found.items():
                    self._read[name].update(dict.fromkeys(files, number))
        if number % STEPS_BETWEEN_TIDYINGS == 0:
            self._folders.manifests.epochs.check(self._engine.manifest.epochs[-1].number)
            self._forget_files()
        return results

    def close(self) -> None:
        """Close what the sources hold open."""
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
