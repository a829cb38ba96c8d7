"""`midstream status` and `midstream explain`: how a job stands, and what runs one of its queries."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from midstream.cli.arguments import AsJson, CheckpointPath, QueryName
from midstream.cli.output import fields_text, print_json, print_table, say
from midstream.cli.watched import watched
from midstream.model.words import brief_text, counted, coverage_text, size_text, time_text

if TYPE_CHECKING:
    from midstream.checkpoint.reader import Checkpoint
    from midstream.checkpoint.report_values import LanesReport, MigrationReport, QueryReport, Report
    from midstream.model.node_spread import NodeSpread

EVENTS_WATCHED = 8
"""Events below a status that is shown again and again."""


def status(
    path: CheckpointPath,
    events: Annotated[
        int | None, typer.Option("--events", metavar="N", min=0, help="Show the last N events too; 8 with --watch.")
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show it again and again, until the job ends or this is interrupted.")
    ] = False,
    every: Annotated[float, typer.Option("--every", metavar="SECONDS", min=0.1, help="How often, with --watch.")] = 2.0,
    as_json: AsJson = False,
) -> None:
    """How a job stands: whether it runs, its steps, streams, queries, migrations, and commands not taken yet."""
    from midstream.checkpoint.reader import Checkpoint

    checkpoint = Checkpoint.open(path)
    if watch:
        shown = EVENTS_WATCHED if events is None else events
        watched(checkpoint, every, lambda: _tell(checkpoint, shown, as_json=False), as_json)
    else:
        _tell(checkpoint, events or 0, as_json)


def _tell(checkpoint: Checkpoint, events: int, as_json: bool) -> None:
    from midstream.checkpoint.liveness import Liveness
    from midstream.explain.event_sentence import event_sentence
    from midstream.model.codec import decode
    from midstream.model.events import Event

    report = checkpoint.report()
    value = checkpoint.status(report) | ({"events": checkpoint.last_events(events)} if events else {})
    if as_json:
        print_json(value)
        return
    life = Liveness(value["state"], value["since"], value["reason"], value["process"])
    say(life.sentence(time.time()), bold=life.state == "failed")
    _show(report, value["checkpoint"])
    if value["time"]:
        say(time_line(value["time"]))
    if value["savepoints"]:
        say("savepoints: " + ", ".join(f"{name}: step {step:,}" for name, step in value["savepoints"].items()))
    print_table(
        "commands not taken yet",
        ("id", "command", "what"),
        [(one["id"], one["command"], fields_text(one, "id", "command")) for one in value["waiting_commands"]],
    )
    happened = [decode(Event, one) for one in value.get("events", ())]
    print_table("events", ("step", "event", "what"), [(one.step, one.kind, event_sentence(one)) for one in happened])


def time_line(time: Mapping[str, Any]) -> str:
    """What steps take, from a summary of their times, as one line.

    >>> time_line({"steps": 20, "seconds": 0.25, "last": 0.3, "phases": {"fold": 0.2}, "interval": 1.0,
    ...     "rows_per_second": 1234.5, "watermark_lag": 5.0, "behind": 9.68e6, "backlog": {"A": 3, "B": 0}})
    'a step takes 250 ms of 1 s (fold 200 ms), 1,234 rows/s, watermark 5 s behind the newest event, backlog 3 (A)'
    """
    from midstream.explain.life_line import lags

    phases = ", ".join(f"{name} {brief_text(took)}" for name, took in time["phases"].items())
    every = f" of {brief_text(time['interval'])}" if time["interval"] else ""
    parts = [f"a step takes {brief_text(time['seconds'])}{every} ({phases})"]
    if time["rows_per_second"] is not None:
        parts.append(f"{time['rows_per_second']:,.0f} rows/s")
    parts += lags(time["behind"], time["watermark_lag"])
    waiting = {name: count for name, count in time["backlog"].items() if count}
    if waiting:
        parts.append(f"backlog {sum(waiting.values()):,} ({', '.join(waiting)})")
    return ", ".join(parts)


def explain(
    path: CheckpointPath,
    query: QueryName,
    analyze: Annotated[bool, typer.Option("--analyze", help="Add what was counted and what is kept.")] = False,
    as_json: AsJson = False,
) -> None:
    """The plan of a running query, its operators, and the queries that it shares rows and joins with (its chain)."""
    from midstream.checkpoint.reader import Checkpoint
    from midstream.explain import explain as explain_query

    manifest = Checkpoint.open(path).manifest()
    if as_json:
        print_json(explain_query(manifest, query, analyze=analyze, format="json"))
    else:
        say(explain_query(manifest, query, analyze=analyze))


def _show(report: Report, place: str) -> None:
    say(
        f"job {report.job or '-'} at {place}: step {report.step:,}, {counted(report.lanes, 'lane')}, "
        f"sharing {report.sharing}, {counted(report.state_rows, 'row')} in {counted(len(report.states), 'state')} "
        f"({counted(report.chunks, 'chunk')}, {size_text(report.state_bytes)})"
    )
    print_table(
        "streams",
        ("stream", "rows", "late", "rejected", "greatest time", "watermark"),
        [
            (s.name, s.rows, s.late, s.rejected, time_text(s.greatest), time_text(s.watermark))
            for s in report.streams.values()
        ],
    )
    print_table(
        "static tables",
        ("table", "version", "rows", "size", "since step"),
        [(t.name, t.version, t.rows, size_text(t.bytes), t.since) for t in report.tables.values()],
    )
    print_table(
        "queries",
        (
            "query",
            "plan",
            "since step",
            "sees",
            "rows out",
            "rejected",
            "comparisons",
            "state rows",
            "optimizer",
            "results",
        ),
        [_query_row(query) for query in report.queries.values()],
    )
    print_table(
        "plans proposed: midstream approve, or reject, CKPT QUERY",
        ("query", "from", "to plan", "by", "saves", "since step"),
        [
            (query.name, one.old, one.plan, one.strategy, f"{one.gain:.0%}", one.step)
            for query in report.queries.values()
            if query.optimizer.waits and (one := query.optimizer.proposal) is not None
        ],
    )
    print_table(
        "spread over nodes",
        (
            "query",
            "by",
            "nodes",
            "shared with",
            "since step",
            "rows at nodes",
            "busiest against mean",
            "visits by hop",
            "bytes by hop",
        ),
        [_spread_row(query, query.nodes) for query in report.queries.values() if query.nodes is not None],
    )
    _show_lanes(report.lane_review)
    print_table(
        "chains",
        ("chain", "plan", "queries", "slices", "state rows"),
        [(c.name, c.plan, len(c.queries), c.slices, c.state_rows) for c in report.chains.values()],
    )
    print_table(
        "migrations under way",
        (
            "query",
            "strategy",
            "to plan",
            "since step",
            "phase",
            "old plan serves",
            "new plan serves",
            "done",
            "ends at",
        ),
        [_migration_row(migration, query) for migration in report.migrations for query in migration.queries],
    )


def _show_lanes(lanes: LanesReport) -> None:
    if not lanes.decision:
        return
    say(f"lanes: {lanes.lanes}, optimizer {lanes.mode}, last review: {lanes.decision}: {lanes.reason}")
    if lanes.waits and lanes.proposal is not None:
        proposed = lanes.proposal
        say(
            f"{proposed.lanes} lanes proposed, saves {proposed.gain:.0%} of a step, since step {proposed.step}: "
            f"midstream approve, or reject, CKPT --lanes {proposed.lanes}"
        )


def _query_row(query: QueryReport) -> tuple[Any, ...]:
    seen, counters = coverage_text(query.sees, query.exact_from), query.counters
    done = (counters.rows_out, query.rejected, counters.comparisons, query.state_rows)
    mode = "pinned" if query.optimizer.pinned else query.optimizer.mode
    return (query.name, query.plan, query.since, seen, *done, mode, query.sink.get("path"))


def _spread_row(query: QueryReport, spread: NodeSpread) -> tuple[Any, ...]:
    rows, sent = (", ".join(map(str, found)) for found in ([one.rows for one in spread.work], spread.sent))
    balance = None if spread.balance is None else f"{spread.balance:.2f}"
    size, mates = ", ".join(map(size_text, spread.bytes)), ", ".join(query.nodes_with) or None
    return query.name, spread.scheme, spread.nodes, mates, spread.since, rows, balance, sent, size


def _migration_row(migration: MigrationReport, query: str) -> tuple[Any, ...]:
    return (
        query,
        migration.strategy,
        migration.plan,
        migration.begun,
        migration.phase,
        migration.old_serves,
        migration.new_serves,
        f"{migration.progress:.0%}",
        time_text(migration.predicted_end),
    )
