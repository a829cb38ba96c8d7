"""Samples of rows: late ones, those that could not be read, what of a query is rejected, kept rows, and results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa

from midstream.admission.refused_rows import REASON, WATERMARK
from midstream.checkpoint.folders import DEAD_LETTERS, LATE, REJECTED
from midstream.dashboard.job_reading import JobReading
from midstream.dashboard.trial import kept_tables
from midstream.model.errors import MidstreamError
from midstream.model.python_values import python_values
from midstream.sinks.file_sink import FileSink
from midstream.sinks.formats import parquet_rows
from midstream.storage.files import FileStore
from midstream.storage.places import storage_at

EVENT_OF = {LATE: "rows_late", DEAD_LETTERS: "rows_rejected", REJECTED: "results_rejected"}
"""The event that tells of rows of a kind."""

FEW = 5
"""So many kept rows of a stream, and results of a query, are a sample."""

ROWS_SHOWN = 20
"""So many of the newest rows of a stream are a sample."""

REASONS_SHOWN = 8
"""So many of the most frequent reasons are told."""

FILES_READ = 4
"""So many of the newest files are looked into."""

TEXT_SHOWN = 300
"""So many characters of a value."""

LARGEST = 1 << 25
"""Bytes; a larger file is not looked into."""


def sample(reading: JobReading, kind: str, stream: str) -> dict[str, Any]:
    """Sample the newest rows of a stream or query that are of a kind, with the reasons, as JSON values.

    `columns`; `rows`: lists of texts, None for NULL; for each row its step in `steps`, its `reasons` (of dead letters),
    and in `late_by` the microseconds by which it came too late, None where its time is not a timestamp. `read`: how
    many rows were looked at; `common`: their most frequent reasons, `reason` and `count`. A step's rows are put in
    place just after its manifest: of the newest one they may be missing.
    """
    found, common, read = list[dict[str, Any]](), Counter[str](), 0
    timestamp = "" if kind == REJECTED else reading.manifest.streams[stream].timestamp
    for step, table in _tables(reading, kind, stream):
        read += table.num_rows
        if REASON in table.column_names:
            common.update(table.column(REASON).to_pylist())
        shown = table.slice(0, ROWS_SHOWN - len(found))
        late_by = _late_by(shown, timestamp)
        cells = {name: python_values(shown.column(name)) for name in shown.column_names}
        for at, behind in enumerate(late_by):
            row = {name: values[at] for name, values in cells.items()}
            reason = row.pop(REASON, None)
            row.pop(WATERMARK, None)
            values = {name: _text(value) for name, value in row.items()}
            found.append({"step": step, "reason": reason, "late_by": behind, "values": values})
    columns = list(dict.fromkeys(name for one in found for name in one["values"]))
    return {
        "stream": stream,
        "kind": kind,
        "columns": columns,
        "rows": [[one["values"].get(name) for name in columns] for one in found],
        "steps": [one["step"] for one in found],
        "reasons": [one["reason"] for one in found],
        "late_by": [one["late_by"] for one in found],
        "read": read,
        "common": [{"reason": reason, "count": count} for reason, count in common.most_common(REASONS_SHOWN)],
    }


def kept_sample(reading: JobReading, stream: str) -> dict[str, Any]:
    """Sample the newest kept rows of a stream: `columns`, and `rows` as lists of texts, none where none are kept."""
    kept = kept_tables(reading.manifest).get(stream)
    listings = [] if kept is None else kept.listings
    chunks = [one.chunks[-1] for one in listings if one.chunks and one.chunks[-1].bytes <= LARGEST]
    newest = max(chunks, key=lambda chunk: (chunk.born or (0, 0))[1], default=None)
    if kept is None or newest is None:
        return _texts(pa.table({}))
    store = FileStore(reading.checkpoint.folders.chunks.url)
    rows = pa.Table.from_batches([store.get(newest)])
    return _texts(kept.shown(rows.slice(max(0, rows.num_rows - FEW))))


def results_sample(reading: JobReading, query: str) -> dict[str, Any]:
    """Sample the newest results of a query: `step`, `columns`, `rows`; `elsewhere` says where they are instead.

    Only Parquet files are looked into.
    """
    sink = reading.report.query(query).sink
    if "path" not in sink or sink.get("format", "parquet") != "parquet":
        kind = sink.get("type") or sink.get("format")
        return {"elsewhere": f"in the sink: {kind}" if kind else "with the program that pushes"}
    done = [event for event in reading.events_of("step_done") if event["rows_out"].get(query)]
    files, storage, line = FileSink(str(sink["path"])), storage_at(str(sink["path"])), reading.manifest.time_line
    for event in reversed(done[-FILES_READ:]):
        step = event["step"]
        with suppress(FileNotFoundError, MidstreamError):
            sizes = dict(storage.walk(f"step={step:08d}"))
            stamped = files.files(
                range(step, step + 1), lambda stamp: not stamp.job or line.has(stamp), one_by_one=True
            )
            for _, name in stamped:
                if sizes.get(name, 0) <= LARGEST:
                    return {"step": step, **_texts(parquet_rows(storage.read(name), name).slice(0, FEW))}
    return {"elsewhere": f"not in {sink['path']} yet"}


def _texts(rows: pa.Table) -> dict[str, Any]:
    cells = [python_values(rows.column(name)) for name in rows.column_names]
    return {
        "columns": rows.column_names,
        "rows": [[_text(column[at]) for column in cells] for at in range(rows.num_rows)],
    }


def steps_with(reading: JobReading, kind: str, stream: str) -> list[int]:
    """List the steps that rows of a kind came in, the newest first, as far as events are remembered."""
    told = (
        event
        for event in reversed(reading.events_of(EVENT_OF[kind]))
        if event.get("stream", event.get("query")) == stream
    )
    return list(dict.fromkeys(event["step"] for event in told))


def in_place(reading: JobReading, kind: str, stream: str) -> list[str]:
    """List the files of the newest step that had rows of a kind."""
    return [name for step in steps_with(reading, kind, stream)[:1] for _, name in _files(reading, kind, stream, step)]


def _tables(reading: JobReading, kind: str, stream: str) -> Iterator[tuple[int | None, pa.Table]]:
    # The newest files first; of a saved engine all that it kept.
    if not reading.manifest.job:
        published = reading.manifest.published
        ref = {LATE: published.late, DEAD_LETTERS: published.dead_letters}.get(kind, {}).get(stream)
        if ref is not None:
            store = FileStore(reading.checkpoint.folders.chunks.url)
            yield None, pa.Table.from_batches([store.get(ref)])
        return
    storage, left = storage_at(_folder(reading, kind, stream)), FILES_READ
    for step in steps_with(reading, kind, stream):
        sizes = dict(storage.walk(f"step={step:08d}"))
        for _, name in _files(reading, kind, stream, step):
            if not left:
                return
            left -= 1
            # The job may take a file away just then, when it goes back to an earlier step.
            with suppress(FileNotFoundError, MidstreamError):
                if sizes.get(name, 0) <= LARGEST:
                    yield step, parquet_rows(storage.read(name), storage.place(name))


def _files(reading: JobReading, kind: str, stream: str, step: int) -> Iterator[tuple[int, str]]:
    line = reading.manifest.time_line
    sink = FileSink(_folder(reading, kind, stream))
    return sink.files(range(step, step + 1), lambda stamp: not stamp.job or line.has(stamp), one_by_one=True)


def _folder(reading: JobReading, kind: str, stream: str) -> str:
    return reading.checkpoint.folders.rejected(kind, stream)


def _late_by(rows: pa.Table, timestamp: str) -> list[int | None]:
    unknown: list[int | None] = [None] * rows.num_rows
    if not {WATERMARK, timestamp} <= set(rows.column_names):
        return unknown
    marks, times = rows.column(WATERMARK), rows.column(timestamp)
    if not pa.types.is_timestamp(times.type):
        return unknown
    both = zip(marks.cast(pa.int64()).to_pylist(), _microseconds(times), strict=True)
    return [None if time is None else mark - time for mark, time in both]


def _microseconds(times: pa.ChunkedArray) -> list[int | None]:
    found: list[int | None] = times.cast(pa.timestamp("us", times.type.tz), safe=False).cast(pa.int64()).to_pylist()
    return found


def _text(value: Any) -> str | None:
    if value is None:
        return None
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) <= TEXT_SHOWN else f"{text[:TEXT_SHOWN]}…"
