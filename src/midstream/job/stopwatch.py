"""What a step takes by phase."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


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
