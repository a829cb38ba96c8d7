"""What one request sees of a job: a step as it was, and everything that has happened up to it."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import RLock
from typing import Any

from midstream.checkpoint.liveness import Liveness
from midstream.checkpoint.reader import Checkpoint
from midstream.checkpoint.report import report
from midstream.checkpoint.report_values import QueryReport, Report
from midstream.model.command import Command
from midstream.model.errors import QueryError
from midstream.model.events import EVENTS_KEPT
from midstream.model.manifest import Manifest
from midstream.model.step_time import StepTime
from midstream.model.time_line import TimeLine


class EventHistory:
    """The newest events of a job, of at most `EVENTS_KEPT`."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._log = checkpoint.folders.events
        self._line: TimeLine | None = None
        self._last = -1
        self._found = deque[dict[str, Any]](maxlen=EVENTS_KEPT)

    def upto(self, manifest: Manifest) -> list[dict[str, Any]]:
        """Read what has happened up to the step of a manifest, oldest first; later events may be among it."""
        carried = manifest.published.events
        known = () if self._line is None else self._line.epochs
        if self._line is None or manifest.epochs != known[: len(manifest.epochs)]:
            # Another epoch: steps may have been given up.
            self._line, self._last = manifest.time_line, -1
            self._found.clear()
        if manifest.step > self._last:
            files = list(self._log.read(manifest.time_line, manifest.step, self._last))
            new = [*files, *(event for event in carried if event["step"] > self._last)]
            self._found.extend(new)
            self._last = manifest.step
        return list(self._found)


READINGS_KEPT = 12
"""So many steps of a job are kept as they were read: the newest, and those that someone looks back at."""

ANSWERS_KEPT = 32
"""So many answers of views are kept of each step: anybody who asks may search for any text."""


@dataclass(frozen=True)
class JobReading:
    """A step of a job, read once however many views and requests look at it; nothing is computed that none asks for.

    `version` is another one as soon as something has happened that a view may show.

    >>> from tempfile import TemporaryDirectory
    >>> from midstream.embedded import Engine
    >>> with TemporaryDirectory() as folder:
    ...     Engine(lanes=2).save(folder + "/saved")
    ...     reading = JobReadings(Checkpoint.open(folder + "/saved")).reading()
    ...     reading.report.lanes, reading.events
    (2, [])
    """

    checkpoint: Checkpoint
    manifest: Manifest
    version: str
    is_newest: bool
    history: EventHistory
    earlier: Manifest | None = None
    """An older step that was seen not long before, to tell what has been done since; None where none was."""
    answers: OrderedDict[tuple[Any, ...], dict[str, Any]] = field(
        default_factory=OrderedDict, repr=False, compare=False
    )
    """What views have computed of this step, by all that it depends on; of what was asked for last."""

    @property
    def step(self) -> int:
        """The number of the step."""
        return self.manifest.step

    def times(self, last: int) -> tuple[StepTime, ...]:
        """Read what the last steps up to this one took, oldest first; a job writes it some seconds after a step."""
        return self.checkpoint.folders.times.newest(self.manifest.time_line, self.step, last)

    @cached_property
    def report(self) -> Report:
        """How the job stood after the step."""
        return report(self.manifest)

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """What happened up to the step, oldest first, as JSON values; of a long history the newest."""
        found = self.history.upto(self.manifest)
        return [event for event in found if event["step"] <= self.step]

    @cached_property
    def waiting(self) -> tuple[tuple[int, Command], ...]:
        """The commands of the log that no step had taken, with their numbers."""
        return self.checkpoint.waiting(self.manifest) if self.is_newest else ()

    def query(self, options: Mapping[str, str]) -> QueryReport | None:
        """Report the query that is asked for, else the first; None if the job has none. Raises for an unknown name."""
        name = options.get("query") or next((query.name for query in self.report.asked), "")
        return self.report.query(name) if name else None

    def events_of(self, *kinds: str) -> list[dict[str, Any]]:
        """List the events of these kinds, oldest first."""
        return [event for event in self.events if event["event"] in kinds]


class JobReadings:
    """The steps of one checkpoint as requests have read them.

    To ask whether anything has happened costs the listing of two folders; the newest manifest is read once.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self.lock = RLock()
        """Held while a view is computed, so that a dashboard never takes more than one core a job."""
        self._kept: OrderedDict[str, JobReading] = OrderedDict()
        self._history = EventHistory(checkpoint)

    def life(self) -> Liveness:
        """Judge whether the job runs, as `midstream status` does, without reading a manifest again."""
        return self.checkpoint.liveness_by(self.reading().times(1) if self.has_begun else ())

    def steps(self, seen: JobReading | None = None) -> tuple[int, ...]:
        """List the steps that are kept; if the newest was `seen`, only names are read."""
        line = seen.manifest.time_line if seen is not None and seen.is_newest else None
        return self.checkpoint.manifests.steps(line)

    @property
    def has_begun(self) -> bool:
        """Whether there is a step to show. A saved engine is one, also where nothing was pushed."""
        if self._kept or any(step >= 0 for step in self.steps()):
            return True
        newest = self.checkpoint.manifests.latest()
        return newest is not None and not newest.job

    @property
    def pending(self) -> str:
        """Say why there is no step to show yet."""
        if not Checkpoint.is_at(self.checkpoint.url):
            return "there is no checkpoint here yet"
        under_way = self.checkpoint.under_way(-1)
        so_far = "" if under_way is None else f": {under_way.sentence(time.time())}"
        return f"the job has not finished a step yet{so_far}"

    def version(self, step: int | None = None) -> str:
        """Return a text that changes when the job does a step or is given a command."""
        manifests, commands = self.checkpoint.manifests, self.checkpoint.commands
        given = max(commands.numbers(), default=0)
        return f"{manifests.newest_name()}+{given}" + ("" if step is None else f"@{step}")

    def _before(self, manifest: Manifest) -> Manifest | None:
        # No older step is read for this: that would cost too much.
        steps = {one.step: one.manifest for one in self._kept.values() if one.manifest.step < manifest.step}
        return steps[min(steps)] if steps else None

    def reading(self, step: int | None = None) -> JobReading:
        """Read a kept step, the newest unless one is named; raises `CheckpointError` where it is not kept."""
        with self.lock:
            version = self.version(step)
            known = self._kept.pop(version, None)
            if known is None:
                manifest = self.checkpoint.manifest() if step is None else self.checkpoint.manifests.read(step)
                known = JobReading(
                    self.checkpoint, manifest, version, step is None, self._history, self._before(manifest)
                )
            self._kept[version] = known
            while len(self._kept) > READINGS_KEPT:
                self._kept.popitem(last=False)
            return known


def one_of(options: Mapping[str, str], name: str, allowed: Sequence[str]) -> str:
    """Return an option that has one of a few values, the first where it is not given.

    >>> one_of({"per": "lane"}, "per", ("job", "lane")), one_of({}, "per", ("job", "lane"))
    ('lane', 'job')
    """
    value = options.get(name) or allowed[0]
    if value not in allowed:
        raise QueryError(f"{name} cannot be {value!r}", place=name, remedy=f"use one of: {', '.join(allowed)}")
    return value
