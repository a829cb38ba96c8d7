"""The times of a running job's steps: in memory, and in its checkpoint a little later."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from midstream.checkpoint.folders import Folders
from midstream.checkpoint.time_log import TIMES_KEPT, text_of
from midstream.model.errors import InputError, MidstreamError
from midstream.model.events import Event, MigrationBegun, ResultsRejected, RowsLate, RowsRejected, StepDone
from midstream.model.frozen import revised
from midstream.model.manifest import Manifest
from midstream.model.step_time import StepTime, StepTotals, StepUnderWay
from midstream.storage.local import LocalStorage


class Stopwatch:
    """Seconds of phases that follow one another, by a clock that never jumps.

    >>> watch = Stopwatch()
    >>> watch.lap("fold")
    >>> list(watch.phases), watch.seconds == sum(watch.phases.values())
    (['fold'], True)
    """

    def __init__(self) -> None:
        self.phases: dict[str, float] = {}
        self._lapped = time.monotonic()

    @property
    def seconds(self) -> float:
        """What all phases took together."""
        return sum(self.phases.values())

    def lap(self, phase: str) -> None:
        """End a phase, or a part of one: it took the time since the last lap."""
        now = time.monotonic()
        self.phases[phase] = self.phases.get(phase, 0.0) + now - self._lapped
        self._lapped = now

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a phase, also where it raises."""
        try:
            yield
        finally:
            self.lap(name)


WRITTEN_EVERY, WRITTEN_EVERY_FAR = 2.0, 5.0
"""Seconds, on a file system and on an object store, within which a step's times are written."""


def check_figures(took: object, interval: object, backlog: object) -> None:
    """Raise an `InputError` where what a host says of a step are not seconds, or no rows by stream."""
    for name, given in (("took", took), ("interval", interval)):
        if given is not None and not _is_number(given):
            raise InputError(
                f"{given!r} is not a number of seconds", place=name, remedy="give a number of at least 0, or None"
            )
    rows = {} if backlog is None else backlog
    if not isinstance(rows, Mapping) or not all(isinstance(n, str) and _is_number(c) for n, c in rows.items()):
        raise InputError(
            f"{backlog!r} does not give the number of waiting rows by stream",
            place="backlog",
            remedy='give a mapping such as {"A": 7}, or None',
        )


def _is_number(given: object) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given < math.inf


def timed(
    manifest: Manifest,
    events: Iterable[Event],
    watch: Stopwatch,
    interval: float | None = None,
    backlog: Mapping[str, int] | None = None,
) -> StepTime:
    """Collect the times of a step that has ended just now, from its manifest, its events and its watch."""
    happened = list(events)
    done = next(one for one in reversed(happened) if isinstance(one, StepDone))
    return StepTime(
        step=manifest.step,
        ended=time.time(),
        seconds=watch.seconds,
        phases=dict(watch.phases),
        interval=interval,
        rows={name: rows for name, rows in done.rows_in.items() if rows},
        late=sum([one.rows for one in happened if isinstance(one, RowsLate)]),
        rejected=sum([one.rows for one in happened if isinstance(one, RowsRejected | ResultsRejected)]),
        results=sum(done.rows_out.values()),
        backlog=dict(backlog or {}),
        newest=max([one.greatest for one in manifest.progress.values() if one.greatest is not None], default=None),
        migrations=sum([isinstance(one, MigrationBegun) for one in happened]),
        watermark=min([mark for mark in done.watermarks.values() if mark is not None], default=None),
    )


class StepTimes:
    """The times of the newest steps, oldest first; in a checkpoint's `times` within some seconds, by a thread.

    No step waits for that or is slower because of it; a store gets one request more every few seconds while steps are
    done, and none while none is. A fault in writing is passed over, because what is lost is times.
    """

    def __init__(self, folders: Folders | None = None, epoch: int = 0, every: float | None = None) -> None:
        self._folders = folders
        far = folders is not None and folders.is_remote
        self._every = every if every is not None else WRITTEN_EVERY_FAR if far else WRITTEN_EVERY
        self._epoch = epoch
        self._noted: deque[_Noted] = deque(maxlen=TIMES_KEPT)
        self._totals = StepTotals()
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._due: threading.Timer | None = None
        self._tidied = False
        self._under_way: StepUnderWay | None = None
        self._written: StepUnderWay | None = None

    @property
    def under_way(self) -> StepUnderWay | None:
        """The step that has begun and not ended."""
        return self._under_way

    def begin(self, step: int, rows: int | None = None) -> None:
        """Remember that a step has begun, or how many rows it has."""
        with self._lock:
            before = self._under_way
            began = before.begun if before is not None and before.step == step else time.time()
            self._under_way = StepUnderWay(step, began, rows)
            self._have_written()

    def has_read(self, rows: int) -> None:
        """Remember how many rows the step that has begun has read so far."""
        with self._lock:
            if self._under_way is not None:
                self._under_way = replace(self._under_way, rows=rows)
                self._have_written()

    def end(self) -> None:
        """Forget the step that had begun: it has ended, or failed."""
        with self._lock:
            if self._under_way is not None:
                self._under_way = None
                self._have_written()

    @property
    def newest(self) -> tuple[StepTime, ...]:
        """The times that are remembered, oldest first."""
        with self._lock:
            return tuple(one.time for one in self._noted)

    def note(self, time: StepTime) -> None:
        """Remember a step's times."""
        with self._lock:
            self._under_way = None
            self._totals = self._totals.plus(1, time.phases, time.migrations)
            self._noted.append(_Noted(revised(time, totals=self._totals)))
            self._have_written()

    def amend(self, step: int, phases: Mapping[str, float], backlog: Mapping[str, int]) -> None:
        """Add, once, what became known of the newest step after it ended: phases before the others, and a backlog."""
        with self._lock:
            if not self._noted or self._noted[-1].time.step != step or phases.keys() & self._noted[-1].time.phases:
                return
            known, self._totals = self._noted[-1].time, self._totals.plus(0, phases, 0)
            seconds, every = known.seconds + sum(phases.values()), {**phases, **known.phases}
            known = replace(known, seconds=seconds, phases=every, backlog=dict(backlog), totals=self._totals)
            self._noted[-1] = _Noted(known)
            self._have_written()

    def write(self) -> None:
        """Write what is not written yet."""
        with self._writing:
            with self._lock:
                if self._due is not None:
                    self._due.cancel()
                self._due, noted, under_way = None, list(self._noted), self._under_way
            same = under_way == self._written and all(one.text for one in noted)
            if self._folders is None or same or not self._is_there():
                return
            for one in noted:
                one.text = one.text or text_of(one.time)
            try:
                self._folders.times.write(self._epoch, [one.text for one in noted], under_way)
                self._written = under_way
                if not self._tidied:
                    self._folders.times.tidy(self._epoch)
                    self._tidied = True
            except (MidstreamError, OSError):
                return

    def _have_written(self) -> None:
        if self._folders is not None and self._due is None:
            self._due = threading.Timer(self._every, self.write)
            self._due.daemon = True
            self._due.start()

    def _is_there(self) -> bool:
        # As far as that costs nothing: a checkpoint that was deleted must not come back.
        storage = None if self._folders is None else self._folders.storage
        return not isinstance(storage, LocalStorage) or storage.root.is_dir()


class _Noted:
    """A step's times, and the line they are in the checkpoint, once they are."""

    def __init__(self, time: StepTime) -> None:
        self.time, self.text = time, ""
