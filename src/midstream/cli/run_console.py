"""The console of `midstream run`: a line of life, and a line for all that happens to the job."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Self

from midstream.cli.output import progress_line, say

if TYPE_CHECKING:
    from midstream.model.events import Event, StepDelayed
    from midstream.pipeline.lost_rows import LostRows, LostRowsWatch, Source
    from midstream.pipeline.reported import Reported

PLAIN_EVERY = 10.0
"""Seconds between lines of life where a line cannot be overwritten: in a file, or what a service manager keeps."""


class RunConsole:
    """Context manager that prints the progress of a running job.

    With `quiet` the context manager prints nothing. On a terminal, it shows one line, and overwrites this line. Until
    there is progress to show, the line shows the argument `doing`, such as "starting Spark". If stdout is not a
    terminal, the context manager prints a line after a step, at most every 10 seconds.
    """

    def __init__(self, quiet: bool, doing: str) -> None:
        self._quiet, self._doing = quiet, doing
        self._line = progress_line(quiet)
        self._task = self._line.add_task(doing, total=None)
        self._in_place = not quiet and sys.stdout.isatty()
        self._newest: Event | None = None
        self._lost: LostRowsWatch | None = None
        self._begun = -1
        self._shown, self._due = -1, time.monotonic() + PLAIN_EVERY

    def __enter__(self) -> Self:
        self._line.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._line.stop()

    def begin(self, doing: str) -> None:
        """Show the text `doing` until there is progress to show."""
        self._doing, self._due = doing, time.monotonic() + PLAIN_EVERY
        if self._in_place:
            self._line.update(self._task, description=doing)
        elif not self._quiet:
            say(doing)

    def lost(self, before: Mapping[Source, LostRows]) -> None:
        """Report lost rows from now on, except the rows in `before`, which the job lost earlier."""
        from midstream.pipeline.lost_rows import LostRowsWatch

        self._lost = LostRowsWatch(before)

    def report(self, running: Reported, delayed: StepDelayed | None = None) -> None:
        """Print the new events and the progress of a running job.

        If the job has delayed a step, `delayed` is the event that reports the delay.
        """
        from midstream.explain.event_sentence import event_lines, event_sentence
        from midstream.explain.life_line import life_line
        from midstream.pipeline.journal import is_news

        if self._quiet:
            return
        news = [event for event in self._new(running) if is_news(event)]
        if news:
            # Parts of queries have names that nobody gave.
            parts = {query.name for query in running.report().queries.values() if query.part_of}
            news = [event for event in news if getattr(event, "query", None) not in parts]
        for line in event_lines(news):
            say(line)
        if self._lost is not None:
            for line in self._lost.news(running.report()):
                say(line)
        under_way = running.under_way
        if under_way is not None and not running.times and under_way.step != self._begun:
            self._begun = under_way.step
            self.begin(f"step {under_way.step:,} begins")
        waits = "" if delayed is None else event_sentence(delayed)
        line = (life_line(running.times) or self._doing) if delayed is None else f"step {delayed.step:,} {waits}"
        if under_way is not None and delayed is None:
            so_far = under_way.sentence(time.time())
            line = f"{line} · {so_far}" if running.times else so_far
        if self._in_place:
            self._line.update(self._task, description=line)
        elif self._is_due(running):
            say(line)

    def _new(self, running: Reported) -> list[Event]:
        # Oldest first.
        events = running.events
        found: list[Event] = []
        for event in reversed(events):
            if event is self._newest:
                break
            found.append(event)
        self._newest = events[-1] if events else self._newest
        return found[::-1]

    def _is_due(self, running: Reported) -> bool:
        times = running.times
        step, now = times[-1].step if times else -1, time.monotonic()
        if (step == self._shown and running.under_way is None) or now < self._due:
            return False
        self._shown, self._due = step, now + PLAIN_EVERY
        return True
