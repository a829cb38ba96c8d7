"""A checkpoint read from outside: of a job, running or not, or of an engine that was saved. Needs no Spark."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from midstream.checkpoint.command_log import CommandLog
from midstream.checkpoint.folders import Folders, new_sink
from midstream.checkpoint.liveness import Liveness, liveness
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.checkpoint.report import report
from midstream.checkpoint.report_values import Report
from midstream.checkpoint.time_log import TIMES_KEPT
from midstream.commands.add_query import AddQuery
from midstream.commands.base import StepCommand, taken
from midstream.commands.stop import Stop
from midstream.model.codec import decode, encode
from midstream.model.command import Command
from midstream.model.errors import CheckpointError, NoCheckpointError, NoStepError, SinkError
from midstream.model.events import Event
from midstream.model.manifest import Manifest
from midstream.model.step_time import StepTime, StepUnderWay, time_summary
from midstream.step.plan_step import plan_step
from midstream.storage.local import LocalStorage
from midstream.storage.places import Place, storage_at
from midstream.storage.storage_contract import Storage

JsonObject = dict[str, Any]

RECENT = 8
"""How many events are looked through for the newest of a kind."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint: what its newest step left, what happened up to then, what the next step will take.

    Everything is read from files on each call, so that a running job is seen as it goes on.

    >>> from tempfile import TemporaryDirectory
    >>> from midstream.embedded import Engine
    >>> with TemporaryDirectory() as folder:
    ...     Engine(lanes=2).save(folder + "/saved")
    ...     Checkpoint.open(folder + "/saved").report().lanes
    2
    """

    folders: Folders

    @staticmethod
    def open(place: Place) -> Checkpoint:
        """Open the checkpoint of a path or a URL.

        Raises `NoCheckpointError` where there is none, and `OtherFormatError` for one that this midstream cannot read.
        """
        storage = storage_at(place)
        if not Checkpoint.is_at(storage):
            missing = isinstance(storage, LocalStorage) and not storage.root.is_dir()
            raise NoCheckpointError(
                "there is no such folder" if missing else "there is no checkpoint here",
                place=os.fspath(place) if not isinstance(place, Storage) else storage.url,
                remedy="name the checkpoint of a job, or a folder that Engine.save wrote",
            )
        found = Checkpoint(Folders(storage.url))
        found.manifests.check_format()
        return found

    @staticmethod
    def is_at(place: Place) -> bool:
        """Return whether a job or an engine has written a checkpoint to this path or URL."""
        return "manifests" in storage_at(place).names()

    @staticmethod
    def expected(place: Place) -> Checkpoint:
        """Return the checkpoint of a path or a URL, also before a job has written it."""
        return Checkpoint.open(place) if Checkpoint.is_at(place) else Checkpoint(Folders(storage_at(place).url))

    @property
    def url(self) -> str:
        """Return the absolute path or the URL of the checkpoint."""
        return self.folders.storage.url

    @property
    def manifests(self) -> ManifestLog:
        """The manifest log."""
        return self.folders.manifests

    @property
    def commands(self) -> CommandLog:
        """The command log; a saved engine has none."""
        return self.folders.commands

    def manifest(self) -> Manifest:
        """Read the newest manifest; raises `CheckpointError` where a job has not finished a step yet."""
        newest = self.manifests.latest()
        if newest is None or (newest.job and newest.step < 0):
            refused = {} if newest is None else newest.refused
            why = "; ".join(f"query {name} was refused: {one.reason}" for name, one in refused.items())
            under_way = self.under_way(-1)
            so_far = "" if under_way is None else f": {under_way.sentence(time.time())}"
            life = self.liveness_by(())
            if not why and life.state == "failed":
                raise CheckpointError(
                    f"the job has not finished a step yet: {life.sentence(time.time())}",
                    place=self.url,
                    remedy="correct the cause, and start the job again",
                )
            if why:
                raise CheckpointError(
                    f"the job has not finished a step yet: {why}",
                    place=self.url,
                    remedy="correct the query, and start the job again",
                )
            raise NoStepError(
                f"the job has not finished a step yet{so_far}",
                place=self.url,
                remedy="try again when the job has finished a step",
            )
        return newest

    def under_way(self, newest: int) -> StepUnderWay | None:
        """Return the step after the newest that a running job is doing; a job writes it within some seconds."""
        found = self.folders.times.under_way(newest)
        return found if found is not None and self.liveness_by(()).takes_commands else None

    def liveness(self) -> Liveness:
        """Judge whether the job runs, by who holds the checkpoint and what its newest steps have reported."""
        return self.liveness_by(self.step_times(1))

    def liveness_by(self, times: Sequence[StepTime]) -> Liveness:
        """Judge it by the times of steps that were read already, the newest last."""
        return liveness(self.manifests.epochs.newest(), times[-1] if times else None, time.time())

    def report(self) -> Report:
        """Report how the job stands after its newest step."""
        return report(self.manifest())

    def status_without_a_step(self) -> JsonObject:
        """Return what `status` has for a job that ended in order before its first step."""
        return {"checkpoint": self.url, **self.liveness_by(()).to_json(), "step": -1, "queries": {}}

    def waiting(self, seen: Manifest | Report) -> tuple[tuple[int, Command], ...]:
        """List the commands of the log, with their numbers, that had not been taken when the job was `seen`.

        A `stop` is for the driver that it was given to: where that has ended, nothing waits.
        """
        waiting = self.commands.after(seen.last_command)
        if not any(isinstance(command, Stop) for _, command in waiting):
            return waiting
        claim = self.manifests.epochs.newest()
        running = None if claim is None or claim.released else claim.number
        return tuple(one for one in waiting if not isinstance(one[1], Stop) or one[1].epoch == running)

    def sinks(self) -> dict[str, JsonObject]:
        """Describe where the results of each query go, as the manifest does; empty for a query of an engine."""
        return {name: dict(entry.sink or {}) for name, entry in self.manifest().queries.items() if not entry.part}

    def status(self, found: Report) -> JsonObject:
        """Return the status of the job as JSON values.

        It has whether the job runs (`state`, `since`, `reason`, `process`), the report, the savepoints, the commands
        that wait, the newest step's event, how the caches did, what steps take as `time` (`time_summary`), and the step
        that is `under_way`.
        """
        recent = self.last_events(RECENT)
        steps = [event for event in recent[-1:] if event["event"] == "step_done"]
        fetched = [event for event in recent if event["event"] == "chunks_fetched"]
        cache = {"cache": fetched[-1]} if fetched else {}
        savepoints = {name: manifest.step for name, manifest in self.folders.savepoints.all().items()}
        waiting = self.waiting(found)
        times = self.step_times()
        under_way = self.under_way(found.step)
        took = {"time": time_summary(times), "under_way": None if under_way is None else encode(under_way)}
        life = self.liveness_by(times).to_json()
        whole = {**life, "savepoints": savepoints, **status(found, waiting, *steps), **cache, **took}
        return {"checkpoint": self.url, **whole}

    def send(self, command: StepCommand) -> tuple[int, StepCommand]:
        """Check a command and append it to the log; return its number and the command as it was logged."""
        if isinstance(command, AddQuery) and "function" in (command.sink or {}):
            raise SinkError(
                "a command cannot contain a Python function",
                place=f"query {command.query}",
                remedy="use another kind of sink, or add the query in the program that runs the job",
            )
        return send(self.manifest(), self.folders, command)

    def events(self, after: int = -1) -> Iterator[JsonObject]:
        """Yield what happened in the steps after `after`, oldest first, as JSON values."""
        newest = self.manifests.latest()
        if newest is not None:
            yield from self.folders.events.read(newest.time_line, newest.step, after)
            yield from (event for event in newest.published.events if event["step"] > after)

    def step_times(self, last: int = TIMES_KEPT) -> tuple[StepTime, ...]:
        """Read what the last steps took, oldest first, each once: at most 500, those of the last seconds perhaps not
        yet.

        A job writes them within 2 seconds, or 5 on an object store, and when it ends; those that a kill kept it from
        writing are missing.
        """
        newest = self.manifests.latest()
        return () if newest is None else self.folders.times.newest(newest.time_line, newest.step, last)

    def last_events(self, count: int) -> list[JsonObject]:
        """Read the last `count` events, oldest first."""
        newest = self.manifests.latest()
        if newest is None or not count:
            return []
        last = newest.published.events[-count:]
        return [*self.folders.events.newest(newest.time_line, newest.step, count - len(last)), *last]


def status(report: Report, waiting: Sequence[tuple[int, Command]], last_step: JsonObject | None = None) -> JsonObject:
    """Combine a job's report with the commands that no step has taken, as JSON values; pure.

    `waiting` are those of the log. Commands that an engine holds for its next step follow them, without an id.
    """
    value = report.to_json()
    held = [{"id": None, **command} for command in value.pop("pending")]
    logged = [{"id": number, **encode(command)} for number, command in waiting]
    return {**value, "waiting_commands": [*logged, *held], "last_step": last_step}


def send(
    manifest: Manifest, folders: Folders, command: StepCommand, ahead: Sequence[Command] = ()
) -> tuple[int, StepCommand]:
    """Check a command and append it to the log.

    It is checked against the job as the commands that no step has taken yet will leave it: those held in the manifest,
    then `ahead`, then those of the log; one of them that will be refused changes nothing. Raises the `MidstreamError`
    that the job would refuse it by; then nothing is appended. A migration's plan is logged as manifests write it.

    Returns: its number, and the command as it was logged.
    """
    after = taken(upcoming(manifest, folders, ahead), command)
    if isinstance(command, AddQuery):
        new_sink(folders, after, command.query, command.sink)
    command = command.logged(after)
    return folders.commands.append(command, manifest.last_command), command


def upcoming(manifest: Manifest, folders: Folders, ahead: Sequence[Command] = ()) -> Manifest:
    """Apply the commands that no step has taken yet to a manifest; a refused command changes nothing."""
    waiting = [*manifest.pending, *ahead, *(other for _, other in folders.commands.after(manifest.last_command))]
    return plan_step(manifest, waiting).manifest


@dataclass(frozen=True)
class Outcome:
    """State of a command: `sent`, `refused`, `taken` (under way) or `done`."""

    state: str
    event: dict[str, Any] | None = None


def outcome_of(checkpoint: Checkpoint, number: int, command: StepCommand, since: int = -1) -> Outcome:
    """Find out what the steps after `since` have made of the command of this number."""
    manifest = checkpoint.manifest()
    if manifest.last_command < number:
        return Outcome("sent")
    sent = encode(command)
    for event in checkpoint.events(after=since):
        if event["event"] == "command_refused" and _same(event["command"], sent):
            return Outcome("refused", event)
        if command.is_done_by(decode(Event, event)):
            return Outcome("done", event)
    return Outcome("done" if command.is_met(manifest) else "taken")


def _same(refused: dict[str, Any], sent: dict[str, Any]) -> bool:
    return all(refused.get(key) == value for key, value in sent.items())
