"""How jobs stand in the text that Prometheus reads; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from midstream.checkpoint.report_values import QueryReport, Report, StreamReport
from midstream.model.step_time import StepTime, rows_per_second

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

MOST_QUERIES = 1_000
"""Queries that have series of their own: the oldest of a job, so that those which come later take no series away."""

Labels = Mapping[str, str]
Sample = tuple[Labels, float | None]


@dataclass(frozen=True)
class Measured:
    """A job as it is measured: its report, the times of its newest steps, and labels that all its samples have."""

    report: Report
    times: Sequence[StepTime] = ()
    labels: Labels = field(default_factory=dict)

    @property
    def last(self) -> StepTime | None:
        """The newest step of which the times are known."""
        return self.times[-1] if self.times else None

    @property
    def streams(self) -> list[StreamReport]:
        """The streams that are not answers of parts of queries."""
        parts = {query.name for query in self.report.queries.values() if query.part_of}
        return [one for one in self.report.streams.values() if one.name not in parts]

    @property
    def queries(self) -> list[QueryReport]:
        """The queries that have series of their own."""
        return sorted(self.report.asked, key=lambda query: (query.since, query.name))[:MOST_QUERIES]


@dataclass(frozen=True)
class Metric:
    """A metric: its name, which is stable, its kind in Prometheus, what it says, its labels, and how it is measured.

    The samples of a `summary` are named by the label `part`: `sum` or `count`.
    """

    name: str
    kind: str
    help: str
    labels: tuple[str, ...]
    measure: Callable[[Measured], Iterable[Sample]]


def _whole(read: Callable[[Report], float | None]) -> Callable[[Measured], Iterable[Sample]]:
    return lambda job: [({}, read(job.report))]


def _timed(read: Callable[[StepTime], float | None]) -> Callable[[Measured], Iterable[Sample]]:
    return lambda job: [] if job.last is None else [({}, read(job.last))]


def _streams(name: str) -> Callable[[Measured], Iterable[Sample]]:
    return lambda job: [({"stream": one.name}, getattr(one, name)) for one in job.streams]


def _queries(read: Callable[[QueryReport], float]) -> Callable[[Measured], Iterable[Sample]]:
    return lambda job: [({"query": one.name}, read(one)) for one in job.queries]


def _whole_queries(read: Callable[[QueryReport], float]) -> Callable[[Measured], Iterable[Sample]]:
    # A query's parts are queries that run for it: their figures count as its own.
    return lambda job: [
        ({"query": one.name}, sum(read(each) for each in (one, *job.report.parts(one.name)))) for one in job.queries
    ]


def _watermarks(job: Measured) -> Iterator[Sample]:
    for one in job.streams:
        yield {"stream": one.name}, None if one.watermark is None else one.watermark / 1e6


def _phases(job: Measured) -> Iterator[Sample]:
    for name, seconds in {} if job.last is None else job.last.totals.phases.items():
        yield {"phase": name, "part": "sum"}, seconds
        yield {"phase": name, "part": "count"}, job.last.totals.steps if job.last else 0


def _backlog(job: Measured) -> Iterator[Sample]:
    for name, waiting in {} if job.last is None else job.last.backlog.items():
        yield {"stream": name}, waiting


COUNTER, GAUGE, SUMMARY = "counter", "gauge", "summary"

METRICS = (
    Metric("midstream_steps_total", COUNTER, "Steps that are done.", (), _whole(lambda r: r.step + 1)),
    Metric("midstream_rows_total", COUNTER, "Rows of a stream that the job accepted.", ("stream",), _streams("rows")),
    Metric("midstream_late_rows_total", COUNTER, "Late rows of a stream.", ("stream",), _streams("late")),
    Metric(
        "midstream_rejected_rows_total",
        COUNTER,
        "Dead letters of a stream: rows that midstream could not read.",
        ("stream",),
        _streams("rejected"),
    ),
    Metric(
        "midstream_results_total", COUNTER, "Results of a query.", ("query",), _queries(lambda q: q.counters.rows_out)
    ),
    Metric(
        "midstream_rejected_results_total",
        COUNTER,
        "Dead letters of a query: rows and results for which an expression failed.",
        ("query",),
        _whole_queries(lambda q: q.rejected),
    ),
    Metric(
        "midstream_comparisons_total",
        COUNTER,
        "Pairs of rows that joins examined.",
        (),
        _whole(lambda r: r.counters.comparisons),
    ),
    Metric(
        "midstream_moved_rows_total", COUNTER, "Rows that migrations moved.", (), _whole(lambda r: r.counters.moved)
    ),
    Metric(
        "midstream_migrations_total",
        COUNTER,
        "Changes of plan that began since the start of the job.",
        (),
        _timed(lambda t: t.totals.migrations),
    ),
    Metric(
        "midstream_migrations_running",
        GAUGE,
        "Changes of plan that are under way.",
        (),
        _whole(lambda r: len(r.migrations)),
    ),
    Metric(
        "midstream_step_seconds",
        SUMMARY,
        "Seconds that steps took, by phase, since the start of the job.",
        ("phase",),
        _phases,
    ),
    Metric("midstream_last_step_seconds", GAUGE, "Seconds that the newest step took.", (), _timed(lambda t: t.seconds)),
    Metric(
        "midstream_last_step_timestamp_seconds",
        GAUGE,
        "Time at which the newest step ended.",
        (),
        _timed(lambda t: t.ended),
    ),
    Metric("midstream_step_interval_seconds", GAUGE, "The trigger's interval.", (), _timed(lambda t: t.interval)),
    Metric(
        "midstream_rows_per_second",
        GAUGE,
        "Rows that the newest steps (at most 500) read, divided by the run time of these steps in seconds.",
        (),
        lambda job: [({}, rows_per_second(job.times))],
    ),
    Metric(
        "midstream_watermark_lag_seconds",
        GAUGE,
        "Seconds of event time from the least watermark to the newest event.",
        (),
        _timed(lambda t: t.watermark_lag),
    ),
    Metric(
        "midstream_event_lag_seconds",
        GAUGE,
        "Seconds from the newest event's time to the end of the newest step.",
        (),
        _timed(lambda t: t.behind),
    ),
    Metric("midstream_watermark_timestamp_seconds", GAUGE, "The watermark.", ("stream",), _watermarks),
    Metric(
        "midstream_backlog", GAUGE, "Rows (Kafka) or files that wait at the source, if known.", ("stream",), _backlog
    ),
    Metric(
        "midstream_state_rows",
        GAUGE,
        "Rows in the states of a query and of its parts, such as a subquery.",
        ("query",),
        _whole_queries(lambda q: q.state_rows),
    ),
    Metric(
        "midstream_job_state_rows",
        GAUGE,
        "Rows in all states; a shared row counts once.",
        (),
        _whole(lambda r: r.state_rows),
    ),
    Metric(
        "midstream_job_state_bytes",
        GAUGE,
        "Bytes of all chunks (files of the state).",
        (),
        _whole(lambda r: r.state_bytes),
    ),
    Metric(
        "midstream_chunks",
        GAUGE,
        "Chunks (files of the state) that the newest manifest lists.",
        (),
        _whole(lambda r: r.chunks),
    ),
    Metric("midstream_lanes", GAUGE, "Lanes: the partitions of the state.", (), _whole(lambda r: r.lanes)),
    Metric("midstream_queries", GAUGE, "Queries that run.", (), _whole(lambda r: len(r.asked))),
    Metric(
        "midstream_queries_without_series",
        GAUGE,
        "Queries that have no series: only the 1,000 oldest queries have series.",
        (),
        _whole(lambda r: max(0, len(r.asked) - MOST_QUERIES)),
    ),
)
"""All metrics, as they are documented; names and labels are stable."""


def prometheus_text(report: Report, times: Sequence[StepTime] = ()) -> str:
    """Describe a job in Prometheus's text format; `times` are those of its newest steps, oldest first.

    Counters only grow, or begin again from 0 where a job is started again, as Prometheus expects. Of a job there are at
    most 3 series a query for the oldest 1,000 queries, 5 a stream, and some tens.

    >>> from midstream.checkpoint.report import report
    >>> from midstream.model.manifest import Manifest
    >>> prometheus_text(report(Manifest(step=6))).splitlines()[:3]
    ['# HELP midstream_steps_total Steps that are done.', '# TYPE midstream_steps_total counter',
    'midstream_steps_total 7']
    """
    return exposition([Measured(report, times)])


def exposition(jobs: Sequence[Measured]) -> str:
    """Describe several jobs in Prometheus's text format; their labels tell them apart."""
    lines = list[str]()
    for metric in METRICS:
        samples = [
            _line(metric.name, {**job.labels, **labels}, value)
            for job in jobs
            for labels, value in metric.measure(job)
            if value is not None
        ]
        if samples:
            lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}", *samples]
    return "\n".join(lines) + "\n" if lines else ""


def _line(name: str, labels: Labels, value: float) -> str:
    part = f"_{labels['part']}" if "part" in labels else ""
    text = ",".join(f'{label}="{_escaped(one)}"' for label, one in labels.items() if label != "part")
    return f"{name}{part}{{{text}}} {_number(value)}" if text else f"{name}{part} {_number(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else repr(float(value))
