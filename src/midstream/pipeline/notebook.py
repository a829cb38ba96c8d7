"""What a notebook shows: queries, plans, migrations and figures that draw themselves, and a live view of a job."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from midstream.checkpoint.report import report
from midstream.checkpoint.report_values import Report
from midstream.explain.graph import plan_graph
from midstream.explain.life_line import life_line
from midstream.explain.plan_svg import plan_svg
from midstream.model.errors import InputError
from midstream.model.html import html_fields, html_table
from midstream.model.manifest import Manifest
from midstream.model.step_time import StepTime
from midstream.model.words import time_text


class Explained(str):
    """The text that explains a query; a notebook draws the plan above it. Otherwise a text like any other."""

    svg: str
    """The plan as one SVG element: write it to a file to keep it."""

    @classmethod
    def of(cls, text: str, drawing: str) -> Explained:
        """Make the text, with a drawing as SVG."""
        made = cls(text)
        made.svg = drawing
        return made

    def _repr_html_(self) -> str:
        return f"<div>{self.svg}<pre>{escape(self)}</pre></div>"


class MetricsShown(dict[str, Any]):
    """The figures of `metrics()`; a notebook shows the totals, and a line for each query."""

    def _repr_html_(self) -> str:
        queries: Mapping[str, Mapping[str, Any]] = self.get("queries", {})
        names = list(dict.fromkeys(name for one in queries.values() for name in one))
        rows = [(query, *(one.get(name) for name in names)) for query, one in queries.items()]
        whole = {name: value for name, value in self.items() if not isinstance(value, Mapping)}
        headings = [name.replace("_", " ") for name in names]
        return f"<div>{html_fields('', whole)}{html_table('queries', ['query', *headings], rows)}</div>"


class MigrationShown(dict[str, Any]):
    """The values of `migration()`; a notebook shows them as a table."""

    def _repr_html_(self) -> str:
        own = {name: value for name, value in self.items() if name not in ("under_way", "detail", "mark", "queries")}
        shown = {**own, "progress": f"{self['progress']:.0%}", "predicted_end": time_text(self["predicted_end"])}
        return html_fields(f"migration of {self['query']}", shown)


def plan_drawing(manifest: Manifest, name: str) -> str:
    """Draw the plan of a query, during a migration both plans, as an SVG element."""
    found = report(manifest)
    query = found.query(name)
    return plan_svg(plan_graph(manifest, found, name), f"plan {query.plan} of query {name}")


def whole_html(manifest: Manifest, found: Report, times: Sequence[StepTime], name: str | None = None) -> str:
    """Render a job as HTML: its line of life, streams, queries, migrations; for a named query, the plan."""
    line = f"<p><code>{escape(life_line(times))}</code></p>" if times else ""
    if name is None:
        return f"<div>{line}{found._repr_html_()}</div>"
    migration = found.query(name).migration_json()
    below = MigrationShown(migration)._repr_html_() if migration else ""
    return f"<div>{line}{plan_drawing(manifest, name)}{below}</div>"


class Watch:
    """A cell that is drawn again while a job runs, until it is closed, the job has ended, or time is over.

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
            remedy="call watch in a notebook's cell; on a terminal, run midstream status CHECKPOINT --watch",
        )
    return display(_Html(text), display_id=True)  # type: ignore[no-untyped-call]
