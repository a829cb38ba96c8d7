"""A checkpoint opened from outside: its steps, what they hold as tables, savepoints, going back and forking."""

from __future__ import annotations

import os
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from midstream.checkpoint.folders import Folders
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.checkpoint.plans_report import PlansReport, plans_report
from midstream.checkpoint.reader import Checkpoint
from midstream.checkpoint.report import report
from midstream.checkpoint.report_values import Report
from midstream.checkpoint.state_tables import HeldState, StateTable, held_states, state_table
from midstream.commands.add_query import AddQuery
from midstream.model.errors import CheckpointError, QueryError
from midstream.model.manifest import SPARK, Manifest
from midstream.model.time_line import Epoch
from midstream.pipeline.carried_log import copy_carried
from midstream.pipeline.outputs import Outputs
from midstream.pipeline.spark_log import drop_log, fork_log, keep_log
from midstream.sinks import as_sink
from midstream.storage.files import FileStore
from midstream.storage.places import Place, copied, located, work_folder
from midstream.storage.sweep import files_of

Step = int | str
"""A step, by its number or by the name of a savepoint."""


@dataclass(frozen=True)
class WentBack:
    """What going back did: the step, the later ones that were given up, queries whose functions cannot be told."""

    step: int
    given_up: tuple[int, ...]
    functions: tuple[str, ...]


@dataclass(frozen=True)
class OpenCheckpoint:
    """The checkpoint of a job, which may be running. Reading a checkpoint needs no Spark, and never disturbs a job.

    Name a step by its number or by a savepoint's name; None is the newest step. You may call `savepoint`,
    `drop_savepoint` and `fork` while the job runs, but not `rewind`.

    >>> import tempfile, pyarrow as pa
    >>> from midstream.embedded import Engine
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Engine(checkpoint=folder.name) as engine:
    ...     engine.create_stream("A", "k BIGINT, ts TIMESTAMP", timestamp="ts")
    ...     engine.add_query("q", "SELECT x.k FROM A x, A y WHERE x.k = y.k WINDOW 20 SECONDS")
    ...     _ = engine.push({"A": pa.table({"k": [1, 2], "ts": pa.array([0, 1], pa.timestamp("us"))})})
    >>> checkpoint = OpenCheckpoint.of(folder.name)
    >>> checkpoint.steps, checkpoint.state("rows of A#x").arrow()["k"].to_pylist()
    ((-1, 0), [1, 2])
    >>> checkpoint.savepoint("first")
    0
    >>> folder.cleanup()
    """

    checkpoint: Checkpoint

    @staticmethod
    def of(place: Place) -> OpenCheckpoint:
        """Open the checkpoint at a path or URL; raises `NoCheckpointError` if there is none."""
        return OpenCheckpoint(Checkpoint.open(place))

    @property
    def url(self) -> str:
        """Absolute path or URL of the checkpoint."""
        return self.checkpoint.url

    @property
    def steps(self) -> tuple[int, ...]:
        """Numbers of the steps whose manifests the checkpoint keeps: the newest ten."""
        return self._manifests.steps()

    @property
    def savepoints(self) -> dict[str, int]:
        """The savepoints and their steps."""
        return {name: manifest.step for name, manifest in self._folders.savepoints.all().items()}

    def manifest(self, step: Step | None = None) -> Manifest:
        """Read the manifest of a step."""
        if isinstance(step, str):
            return self._folders.savepoints.read(step)
        return self.checkpoint.manifest() if step is None else self._manifests.read(step)

    def report(self, step: Step | None = None) -> Report:
        """Report the status of the job after a step."""
        return report(self.manifest(step))

    def states(self, step: Step | None = None) -> tuple[HeldState, ...]:
        """List the states of operators after a step: one entry for each state of a lane."""
        return held_states(self.manifest(step), self._store)

    def state(self, name: str, step: Step | None = None, *, lane: str | None = None) -> StateTable:
        """Read the rows of one operator after a step, from all lanes or from one.

        `name` is the name or the id of the operator's state.
        """
        return state_table(self.manifest(step), self._store, name, lane)

    def plans(self, query: str, step: Step | None = None) -> PlansReport:
        """Report the plans that a query could use, the cost of each plan, and the optimizer's decision."""
        return plans_report(self.manifest(step), query, self._store)

    def savepoint(self, name: str, step: int | None = None) -> int:
        """Keep a step (by default the newest) as a savepoint, until you drop it. Return the number of the step."""
        manifest = self.manifest(step)
        if not manifest.job:
            raise CheckpointError(
                "a saved engine cannot have savepoints", place=self.url, remedy="copy the engine's folder instead"
            )
        self._folders.savepoints.add(name, manifest)
        try:
            self._refuse_if_gone(manifest)
            if not self._folders.is_remote:  # There the manifest carries it.
                keep_log(self._folders.spark, name, manifest.step)
        except BaseException:
            self._folders.savepoints.drop(name)
            raise
        return manifest.step

    def drop_savepoint(self, name: str) -> None:
        """Drop a savepoint. midstream later removes the files that only this savepoint kept."""
        self._folders.savepoints.drop(name)
        drop_log(self._folders.spark, name)

    def rewind(self, step: Step, *, take_over: bool = False) -> WentBack:
        """Go back to a step: give up later steps, and take their results out of the sinks.

        The job must not be running. If a sink refuses to take results back, nothing changes, and a `SinkError` says
        why. Function sinks never refuse, but keep the results. When the job starts again, it repeats the later steps
        with the rows that its sources still have.
        """
        savepoint = self.manifest(step) if isinstance(step, str) else None
        number = savepoint.step if savepoint is not None else int(step)
        if savepoint is not None and (reason := self._other_time_line(savepoint)):
            raise CheckpointError(
                f"cannot go back to savepoint {step!r}: {reason}",
                place=self.url,
                remedy=f"start another job from the savepoint: midstream fork {self.url} {step} NEW",
            )
        outputs = Outputs(self._folders, {})
        # What refuses now need not take the checkpoint from a driver; only once it is taken nobody writes any more.
        outputs.check_forget(savepoint or self._manifests.read(number), self._manifests.readable_after(number))
        with self._manifests.rewinding(number, savepoint=savepoint, take_over=take_over) as rewinding:
            outputs.check_forget(rewinding.target, rewinding.later)
            functions = outputs.forget_after(rewinding.publish(), rewinding.later)
        return WentBack(number, tuple(one.step for one in rewinding.later), functions)

    def _other_time_line(self, savepoint: Manifest) -> str:
        # Empty if the job can go back to the savepoint.
        newest = self._manifests.newest_whole()
        if newest is not None:
            stamp = savepoint.time_line.stamp(savepoint.step)
            return "" if newest.time_line.has(stamp) else "its step was given up when the job went back before it"
        if self._manifests.last_epoch() > savepoint.epochs[-1].number:
            return "all manifests are damaged, and the job has started again since, so its time line is lost"
        return ""

    def fork(self, step: Step, new: str | os.PathLike[str], sinks: Mapping[str, Any] | None = None) -> str:
        """Make another job from a step of this job, in a new checkpoint. Return the new job's id.

        If both checkpoints are on one file system, they share chunks by hard links; otherwise midstream copies the
        chunks. `sinks` maps names of queries to sinks. A query without an entry writes its results below the new
        checkpoint. A sink may be anything that `job.query` accepts as its `sink`. The new job does not inherit the
        sinks of the old job, not even those of queries that wait for their first step.
        """
        manifest, place = self.manifest(step), located(new)
        waiting = (one.query for one in manifest.pending if isinstance(one, AddQuery))
        queries = dict.fromkeys((*manifest.asked_queries, *waiting))
        target = self._fork_target(manifest, place, queries, sinks or {})
        copied(self._folders.chunks, target.chunks, sorted(files_of(manifest)))
        if not target.is_remote:
            fork_log(self._folders.spark, f"{work_folder(target.storage)}/spark", manifest.step)
        given = {name: as_sink(sink, target.results(name)).to_json() for name, sink in (sinks or {}).items()}
        forked = _forked(manifest, given, target)
        copy_carried(manifest, self._folders, target)
        for stream in manifest.pushed_streams:
            notes = self._folders.sources(stream).by_step(manifest.time_line, manifest.step)
            for at, noted in notes:
                target.sources(stream).note(at, forked.time_line, noted)
        target.manifests.publish(forked)
        return forked.job

    def _fork_target(self, manifest: Manifest, place: str, queries: Collection[str], sinks: Collection[str]) -> Folders:
        unknown = sorted(set(sinks) - set(queries))
        if unknown:
            known = ", ".join(queries)
            raise QueryError(f"there is no query {unknown[0]!r}", place="sinks", remedy=f"use one of: {known}")
        if not manifest.job:
            raise CheckpointError("a saved engine cannot be forked", place=self.url, remedy="copy its folder")
        target = Folders(place)
        if target.storage.names():
            raise CheckpointError(
                "the place of the new checkpoint already has files", place=place, remedy="name a new folder"
            )
        if manifest.published.host == SPARK and target.is_remote != self._folders.is_remote:
            raise CheckpointError(
                "a job on Spark cannot be forked from a folder to an object store, or from a store to a folder",
                place=place,
                remedy="fork a checkpoint in a folder to another folder, and one on an object store to another URL",
            )
        return target

    def _refuse_if_gone(self, manifest: Manifest) -> None:
        # The step of a savepoint that is being made must still be kept. A sweep that looked before the savepoint was
        # there spares what kept manifests list: so the chunks stay if the manifest was one of them until now, and may
        # be swept in a moment if it was not.
        stamp = manifest.time_line.stamp(manifest.step)
        if manifest.step not in self.steps or not self.manifest().time_line.has(stamp):
            raise CheckpointError(f"step {manifest.step} is no longer kept", place=self.url, remedy="name a newer step")

    @property
    def _folders(self) -> Folders:
        return self.checkpoint.folders

    @property
    def _manifests(self) -> ManifestLog:
        return self.checkpoint.manifests

    @cached_property
    def _store(self) -> FileStore:
        return FileStore(self._folders.chunks)


def _forked(manifest: Manifest, sinks: Mapping[str, dict[str, Any]], target: Folders) -> Manifest:
    def sink(query: str) -> dict[str, Any]:
        return sinks.get(query) or as_sink(None, target.results(query)).to_json()

    queries = {
        name: entry if entry.part else replace(entry, sink=sink(name)) for name, entry in manifest.queries.items()
    }
    pending = tuple(
        replace(one, sink=sink(one.query)) if isinstance(one, AddQuery) else one for one in manifest.pending
    )
    # Epochs are counted on, because the names of chunks show by them which are older.
    number = manifest.epochs[-1].number if manifest.epochs else 1
    published = replace(manifest.published, files=(), events=())
    return replace(
        manifest,
        job=secrets.token_hex(8),
        epochs=(Epoch(number, secrets.token_hex(4), manifest.step + 1),),
        queries=queries,
        pending=pending,
        published=published,
        last_command=0,
    )
