"""A live view of a job in a notebook's cell."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from midstream.model.errors import InputError


class Watch:
    """A cell that is drawn anew while a job runs, until it is closed, the job has ended, or time is over.

    A thread looks `every` so many seconds, and draws only what has changed. Nothing waits for it.
    """

    def __init__(self, draw: Callable[[], str], runs: Callable[[], bool], every: float, seconds: float | None) -> None:
        self._draw, self._runs, self._every = draw, runs, every
        self._closed = threading.Event()
        self._left = seconds
        self._shown = draw()
        self._handle = _display(self._shown)
        self._thread = threading.Thread(target=self._keep_drawing, name="midstream watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Draw once more, in the cell that closes it, and then stop."""
        self._closed.set()
        self._thread.join()
        # Always: a front end that listens to one cell at a time misses what the thread drew between two cells.
        self._shown = self._draw()
        self._handle.update(_Html(self._shown))

    def _keep_drawing(self) -> None:
        while not self._closed.wait(self._every):
            self._renew()
            if self._left is not None:
                self._left -= self._every
                if self._left <= 0:
                    return
            if not self._runs():
                self._renew()
                return

    def _renew(self) -> None:
        drawn = self._draw()
        if drawn != self._shown:
            self._shown = drawn
            self._handle.update(_Html(drawn))


class _Html:
    """HTML as a notebook displays it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def _repr_html_(self) -> str:
        return self._text


def _display(text: str) -> Any:
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        get_ipython = None
    if get_ipython is None or get_ipython() is None:
        raise InputError(
            "there is no notebook to draw in",
            place="watch",
            remedy="call it in a notebook's cell; on a terminal: midstream status CHECKPOINT --watch",
        )
    return display(_Html(text), display_id=True)  # type: ignore[no-untyped-call]
