"""The clock of a run: seconds of the schedule, at which all work takes the time that it takes."""

from __future__ import annotations

import time
from collections.abc import Callable


class Clock:
    """Runs with the wall clock from `start` on.

    Where nobody works while the harness waits, waiting may be skipped: the clock is put forward instead. Times of
    steps, gaps and delays are the same then, for a step takes its real time; only the idle time between steps is not
    lived through.
    """

    def __init__(self, start: float, *, skip: bool = False, source: Callable[[], float] = time.perf_counter) -> None:
        self._source, self._skip = source, skip
        self._zero = source() - start

    def now(self) -> float:
        """Seconds of the schedule."""
        return self._source() - self._zero

    def at(self, moment: float) -> float:
        """A moment of the source, in seconds of the schedule."""
        return moment - self._zero

    def wait_until(self, due: float) -> float:
        """Come back at this time, or at once where it has passed; the time then."""
        ahead = due - self.now()
        if ahead > 0 and self._skip:
            self._zero -= ahead
        elif ahead > 0:
            time.sleep(ahead)
        return self.now()
