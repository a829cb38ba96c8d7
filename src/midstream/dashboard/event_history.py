"""The events of a job as a reader has seen them: each file of the log is read once."""

from __future__ import annotations

from collections import deque
from typing import Any

from midstream.checkpoint.event_log import EVENTS
from midstream.checkpoint.reader import Checkpoint
from midstream.model.events import EVENTS_KEPT
from midstream.model.manifest import Manifest
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
        carried = manifest.published.get(EVENTS, ())
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
