"""What `midstream status` prints of a report: its first line, and a table for each kind of thing that a job has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from midstream.cli.output import print_table, say
from midstream.model.words import counted, coverage_text, size_text, time_text

if TYPE_CHECKING:
    from midstream.checkpoint.report_values import LanesReport, MigrationReport, QueryReport, Report, StreamReport
    from midstream.model.node_spread import NodeSpread

STREAMS = ("stream", "rows", "late", "dead", "newest event", "watermark", "queries that wait for it")
TABLES = ("table", "version", "since step", "rows", "size")
QUERIES = (
    "query", "since step", "plan", "sees", "rows out", "dead", "comparisons", "state rows", "optimizer", "results",
)  # fmt: skip
REFUSED = ("query", "step", "why")
PROPOSALS = ("query", "from", "to plan", "by", "saves", "since step")
SPREADS = (
    "query", "by", "nodes", "shared with", "since step", "rows at nodes", "busiest against mean", "visits by hop",
    "bytes by hop",
)  # fmt: skip
CHAINS = ("chain", "plan", "queries", "parts by age of rows", "rows kept")
MIGRATIONS = (
    "query", "strategy", "to plan", "since step", "phase", "old plan serves", "new plan serves", "done", "ends at",
)  # fmt: skip


def print_report(report: Report, place: str) -> None:
    """Print the status of the job whose checkpoint is at `place`, a path or a URL."""
    say(
        f"job {report.job or '-'} at {place}: step {report.step:,}, {counted(report.lanes, 'lane')}, "
        f"sharing {report.sharing}, {counted(report.state_rows, 'row')} in {counted(len(report.states), 'state')} "
        f"({counted(report.chunks, 'chunk')}, {size_text(report.state_bytes)})"
    )
    _print_inputs(report)
    _print_queries(report)
    _say_lanes(report.lane_review)
    chains = [
        (c.name, c.plan, len(c.queries), c.slices, c.state_rows) for c in report.chains.values() if len(c.queries) > 1
    ]
    print_table("chains: queries that share one join", CHAINS, chains)
    moving = [_migration_row(migration, query) for migration in report.migrations for query in migration.queries]
    print_table("migrations under way", MIGRATIONS, moving)


def _print_inputs(report: Report) -> None:
    parts = {query.name for query in report.queries.values() if query.part_of}
    streams = [
        (s.name, s.rows, s.late, s.rejected, time_text(s.greatest), time_text(s.watermark), _held_back(s))
        for s in report.streams.values()
        if s.name not in parts
    ]
    print_table("streams", STREAMS, streams)
    tables = [(t.name, t.version, t.since, t.rows, size_text(t.bytes)) for t in report.tables.values()]
    print_table("static tables", TABLES, tables)


def _held_back(stream: StreamReport) -> str:
    return f"{', '.join(stream.holds_back)}: {stream.since}" if stream.holds_back else ""


def _print_queries(report: Report) -> None:
    queries = report.queries.values()
    print_table("queries", QUERIES, [_query_row(query, report.parts(query.name)) for query in report.asked])
    refused = [(one.name, one.step, one.reason) for one in report.refused.values()]
    print_table("queries refused: mend and start or push again, or midstream drop CKPT QUERY", REFUSED, refused)
    proposals = [
        (query.name, one.old, one.plan, one.strategy, f"{one.gain:.0%}", one.step)
        for query in queries
        if query.optimizer.waits and (one := query.optimizer.proposal) is not None
    ]
    print_table("plans proposed: midstream approve, or reject, CKPT QUERY", PROPOSALS, proposals)
    spreads = [_spread_row(query, query.nodes) for query in queries if query.nodes is not None]
    print_table("spread over nodes", SPREADS, spreads)


def _say_lanes(lanes: LanesReport) -> None:
    if not lanes.decision:
        return
    reviewed = f"last review at {counted(lanes.lanes, 'lane')}: {lanes.decision}: {lanes.reason}"
    say(f"optimizer of lanes: {lanes.mode}, {reviewed}")
    if lanes.waits and lanes.proposal is not None:
        proposed = lanes.proposal
        say(
            f"{counted(proposed.lanes, 'lane')} proposed{_saved(proposed.gain)}, since step {proposed.step}: "
            f"midstream approve, or reject, CKPT --lanes {proposed.lanes}"
        )


def _saved(gain: float) -> str:
    # Fewer lanes save tasks and files, and no time.
    return f", saves {gain:.0%} of a step" if gain >= 0.005 else ", with fewer tasks and files"


def _query_row(query: QueryReport, parts: Sequence[QueryReport]) -> tuple[Any, ...]:
    # The work and the rows of its parts are among those of the query.
    seen, counters = coverage_text(query.sees, query.from_step, query.exact_from), query.counters
    whole = (query, *parts)
    comparisons, rows = sum(one.counters.comparisons for one in whole), sum(one.state_rows for one in whole)
    done = (counters.rows_out, sum(one.rejected for one in whole), comparisons, rows)
    name = f"{query.name} (with {counted(len(parts), 'part')})" if parts else query.name
    mode = "pinned" if query.optimizer.pinned else query.optimizer.mode
    return (name, query.since, query.plan, seen, *done, mode, query.sink.get("path"))


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
