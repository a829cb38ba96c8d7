"""`midstream status`: where a job stands."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from midstream.cli.checkpoint import Checkpoint, CheckpointPath
from midstream.cli.console import AsJson, print_json, print_table, say
from midstream.cli.sight import in_words
from midstream.model.words import sight, time_text

if TYPE_CHECKING:
    from midstream.model.manifest import Manifest, QueryEntry

LAST_STEP = 1
"""Every step's events end with its `step_done`."""


def status(
    path: CheckpointPath,
    events: Annotated[int, typer.Option("--events", metavar="N", min=0, help="Show the last N events too.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Where a job stands: its steps, streams, queries, running migrations and commands it has not taken yet."""
    checkpoint = Checkpoint.at(path)
    report = job_report(checkpoint)
    if events:
        report["events"] = checkpoint.last_events(events)
    if as_json:
        print_json(report)
    else:
        _show(report)


def job_report(checkpoint: Checkpoint) -> dict[str, Any]:
    """Everything that `status` shows, as JSON values."""
    manifest = checkpoint.manifest()
    listings = [s for lane in manifest.lane_states.values() for s in lane.states.values()]
    chunks = {chunk.name: chunk for listing in listings for chunk in listing.chunks}
    return {
        "checkpoint": str(checkpoint.path),
        "job": manifest.job,
        "step": manifest.step,
        "lanes": manifest.lanes,
        "sharing": manifest.sharing,
        "state": {
            "states": len({name for lane in manifest.lane_states.values() for name in lane.states}),
            "rows": _state_rows(checkpoint, manifest),
            "chunks": len(chunks),
            "bytes": sum(chunk.bytes for chunk in chunks.values()),
        },
        "streams": [_stream(manifest, name) for name in manifest.streams],
        "queries": [_query(name, entry) for name, entry in manifest.queries.items()],
        "chains": _chains(manifest),
        "migrations": _migrations(manifest),
        "waiting": [{"id": number, **command.to_json()} for number, command in checkpoint.waiting(manifest)]
        + [{"id": None, **command.to_json()} for command in manifest.pending],
    }


def _state_rows(checkpoint: Checkpoint, manifest: Manifest) -> int:
    """The living rows and combinations, as the newest step counted them."""
    for event in reversed(checkpoint.last_events(LAST_STEP)):
        if event["event"] == "step_done" and event["step"] == manifest.step:
            return int(event["state_rows"])
    from midstream.step.conclude import state_rows

    return state_rows(manifest)


def _stream(manifest: Manifest, name: str) -> dict[str, Any]:
    from midstream.model.manifest import StreamProgress

    progress = manifest.progress.get(name, StreamProgress())
    ends = [] if progress.greatest is None else [progress.greatest - manifest.streams[name].lateness]
    if progress.floor is not None:
        ends.append(progress.floor)
    return {
        "stream": name,
        "rows": progress.rows,
        "late": progress.late,
        "rejected": progress.rejected,
        "greatest": progress.greatest,
        "watermark": max(ends, default=None),
    }


def _query(name: str, entry: QueryEntry) -> dict[str, Any]:
    counters = entry.counters
    return {
        "query": name,
        "plan": entry.plan,
        "since": entry.since,
        "sees": entry.sees,
        "exact_from": entry.exact_from,
        "rows_out": counters.rows_out,
        "comparisons": counters.comparisons,
        "state_rows": counters.state_rows,
        "state_bytes": counters.state_bytes,
        "sink": dict(entry.sink) if entry.sink else None,
        "sql": entry.sql,
    }


def _chains(manifest: Manifest) -> list[dict[str, Any]]:
    """The chains that queries share: how many queries, in how many slices, and how much they keep."""
    if not manifest.chains:
        return []
    from midstream.explain import chain_states

    rows, queries = chain_states(manifest), Counter(entry.chain for entry in manifest.queries.values() if entry.shares)
    return [
        {
            "chain": name,
            "plan": chain.plan,
            "queries": queries[name],
            "slices": max(len(chain.cuts), 1),
            "state_rows": rows.get(name, 0),
        }
        for name, chain in manifest.chains.items()
    ]


def _migrations(manifest: Manifest) -> list[dict[str, Any]]:
    """The migrations under way, oldest first."""
    return [
        {"query": name, "mark": mark, **record}
        for name, entry in manifest.queries.items()
        for mark, record in entry.migrations.items()
    ]


def _show(report: dict[str, Any]) -> None:
    state = report["state"]
    say(
        f"job {report['job'] or '-'} at {report['checkpoint']}: step {report['step']:,}, {report['lanes']} lanes, "
        f"sharing {report['sharing']}, "
        f"{state['rows']:,} rows in {state['states']} states ({state['chunks']:,} chunks, {size_text(state['bytes'])})"
    )
    print_table(
        "streams",
        ("stream", "rows", "late", "rejected", "greatest time", "watermark"),
        [
            (s["stream"], s["rows"], s["late"], s["rejected"], time_text(s["greatest"]), time_text(s["watermark"]))
            for s in report["streams"]
        ],
    )
    print_table(
        "queries",
        ("query", "plan", "since step", "sees", "rows out", "comparisons", "results"),
        [_query_row(q) for q in report["queries"]],
    )
    print_table(
        "chains",
        ("chain", "plan", "queries", "slices", "state rows"),
        [tuple(chain.values()) for chain in report["chains"]],
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
        [
            (
                m["query"],
                m["strategy"],
                m["plan"],
                m["begun"],
                m.get("phase"),
                m.get("old_serves"),
                m.get("new_serves"),
                f"{m.get('progress', 0):.0%}",
                time_text(m.get("predicted_end")),
            )
            for m in report["migrations"]
        ],
    )
    print_table(
        "commands not taken yet",
        ("id", "command", "what"),
        [(w["id"], w["command"], plain(w, "id", "command")) for w in report["waiting"]],
    )
    print_table(
        "events",
        ("step", "event", "what"),
        [(e["step"], e["event"], plain(in_words(e), "step", "event")) for e in report.get("events", ())],
    )


def _query_row(q: dict[str, Any]) -> tuple[Any, ...]:
    path = (q["sink"] or {}).get("path")
    return (q["query"], q["plan"], q["since"], sight(q["sees"], q["exact_from"]), q["rows_out"], q["comparisons"], path)


def plain(value: dict[str, Any], *without: str) -> str:
    """The fields that say something, as one line.

    >>> plain({"query": "q", "plan": None, "options": {}}, "id")
    'query q'
    """
    return ", ".join(f"{k} {v}" for k, v in value.items() if k not in without and v not in (None, {}, [], ""))


def size_text(count: int) -> str:
    """A number of bytes, to be read.

    >>> size_text(999), size_text(1_500_000)
    ('999 B', '1.5 MB')
    """
    size, unit = float(count), 0
    while size >= 1000 and unit < 4:
        size, unit = size / 1000, unit + 1
    return f"{count} B" if unit == 0 else f"{size:.1f} {('B', 'kB', 'MB', 'GB', 'TB')[unit]}"
