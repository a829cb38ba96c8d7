"""What a notebook shows of queries, plans, migrations and figures: texts and JSON values that draw themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from midstream.checkpoint.report import report
from midstream.checkpoint.report_values import Report
from midstream.explain.graph import plan_graph
from midstream.explain.life_line import life_line
from midstream.explain.plan_svg import plan_svg
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
