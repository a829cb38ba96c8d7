"""How an engine and a running job stand: what can be asked of both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from midstream.checkpoint.plans_report import PlansReport, plans_report
from midstream.checkpoint.report import report
from midstream.checkpoint.report_values import Report
from midstream.explain import explain
from midstream.explain.prometheus import prometheus_text
from midstream.model.events import Event, StopRequested
from midstream.model.manifest import Manifest
from midstream.model.step_time import StepTime, StepUnderWay, time_summary
from midstream.model.words import counted
from midstream.pipeline.metrics_server import METRICS_PORT, MetricsServer
from midstream.pipeline.notebook import Explained, MetricsShown, MigrationShown, Watch, plan_drawing, whole_html
from midstream.state.chunk_store import ChunkStore


class Reported(ABC):
    """What is reported of running queries, from a manifest and the times of steps; asking changes nothing."""

    @property
    @abstractmethod
    def times(self) -> tuple[StepTime, ...]:
        """What the newest 500 steps took since this began or was opened, by phase, oldest first."""

    @property
    @abstractmethod
    def under_way(self) -> StepUnderWay | None:
        """The step that has begun and not ended."""

    @property
    @abstractmethod
    def events(self) -> tuple[Event, ...]:
        """What has happened since this began or was opened, oldest first."""

    @property
    def stop_requested(self) -> bool:
        """Whether `midstream stop` has asked this to end: a job does so by itself, a program's own loop has to look."""
        return any(isinstance(event, StopRequested) for event in self.events)

    @abstractmethod
    def _shown(self) -> Manifest:
        """Return the manifest that is shown."""

    @abstractmethod
    def _stored(self) -> tuple[Manifest, ChunkStore]:
        """Return the manifest of the newest step, and the store of its chunks."""

    def plans(self, query: str) -> PlansReport:
        """Report the plans that a query could run by, what each would cost, and what the optimizer would decide now."""
        manifest, store = self._stored()
        return plans_report(manifest, query, store)

    def report(self) -> Report:
        """Report the state of all queries as frozen values; an engine includes the queries that its next step
        begins."""
        return report(self._shown())

    def metrics(self) -> dict[str, Any]:
        """Return exact counters: state rows and bytes now, comparisons so far, also of each query.

        `time` has what steps take, see `time_summary`.
        """
        return MetricsShown({**self.report().metrics(), "time": time_summary(self.times)})

    def metrics_text(self) -> str:
        """Return the metrics in the text format of Prometheus, with names that are stable; see `prometheus_text`."""
        return prometheus_text(self.report(), self.times)

    def serve_metrics(self, port: int = METRICS_PORT, host: str = "127.0.0.1") -> MetricsServer:
        """Serve `metrics_text` at `/metrics` from a thread until the returned server is closed; port 0 takes a free
        one.

        Only this machine can ask, unless `host` names another address to listen at.
        """
        return MetricsServer(self.metrics_text, port, host)

    def migration(self, name: str) -> dict[str, Any] | None:
        """Return the progress of a query's running migration, or None: strategy, phase, what old and new plan serve,
        end.

        `predicted_end` is in event time, in microseconds; it is None where only row counts or spare time decide it.
        `under_way` has all migrations of the query, oldest first: the newest began while the others ran.
        """
        found = self.report().query(name).migration_json()
        return None if found is None else MigrationShown(found)

    def explain(self, name: str, analyze: bool = False, format: str = "text") -> Any:
        """Explain the plan of a query and what serves it; `analyze` adds live counters, `format="json"` gives values.

        A notebook draws the plan above the text, in a migration both plans; `explain(...).svg` is that drawing.
        """
        shown = self._shown()
        found = explain(shown, name, analyze=analyze, format=format)
        return Explained.of(found, plan_drawing(shown, name)) if isinstance(found, str) else found

    def watch(self, name: str | None = None, *, every: float = 1.0, seconds: float | None = None) -> Watch:
        """Draw the running queries in a notebook's cell, again every so many seconds while steps are done; does not
        wait.

        With the name of a query its plan is drawn, during a migration both plans. It ends when the job does, after so
        many `seconds`, or by `close`.
        """
        return Watch(lambda: whole_html(self._shown(), self.report(), self.times, name), self._runs, every, seconds)

    def _runs(self) -> bool:
        # There may be more steps.
        return True

    def __repr__(self) -> str:
        found = self.report()
        names = f"{counted(len(found.queries), 'query')} over {counted(len(found.streams), 'stream')}"
        return (
            f"<{type(self).__name__} after step {found.step:,}: {names}, {counted(found.state_rows, 'row')} in state>"
        )

    def _repr_html_(self) -> str:
        return whole_html(self._shown(), self.report(), self.times)
