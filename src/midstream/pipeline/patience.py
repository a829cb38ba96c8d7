"""What a running job does about a fault that can be mended from outside: it does the step again until it succeeds.

A step is pure and its commit is idempotent, so doing it again is always allowed; the job needs no restart.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from midstream.model.errors import ReadError, WriteError
from midstream.model.events import StepDelayed

PATIENCE = 60_000_000
"""Microseconds that a job does a step again for, unless it is said otherwise."""

_FIRST_PAUSE, _LONGEST_PAUSE, _GRAIN = 0.1, 5.0, 0.05


@dataclass
class Patience:
    """Does a step again while it fails by a `ReadError`, a `WriteError` or an `OSError`, with pauses that grow.

    `limit` is how long, in microseconds of a clock that never jumps; 0 does nothing again. `stopping` says that nobody
    waits for the step any more. `delayed` is the step that is being done again, or None.
    """

    limit: int
    stopping: Callable[[], bool]
    delayed: StepDelayed | None = None

    def do(self, number: int, step: Callable[[], None]) -> None:
        """Do the step again until it succeeds; raises what it last failed with."""
        began, pause, self.delayed = time.monotonic(), _FIRST_PAUSE, None
        while True:
            try:
                step()
            except (ReadError, WriteError, OSError) as error:
                if self.stopping() or time.monotonic() - began >= self.limit / 1e6:
                    raise
                failed = 0 if self.delayed is None else self.delayed.attempts
                self.delayed = StepDelayed(number, str(error), failed + 1)
            else:
                self.delayed = None
                return
            self._wait(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self.stopping():
            time.sleep(_GRAIN)
