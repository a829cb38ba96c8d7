"""Rows that came late or could not be read, as a running job reports them: a line when it begins, and at each tenfold.

Python programs get one warning for each stream or query; `midstream run` prints lines, and sums at the end.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow.compute as pc

from midstream.admission.refused_rows import FILE, REASON, UNREAD
from midstream.checkpoint.folders import DEAD_LETTERS, LATE, REJECTED, Folders
from midstream.checkpoint.report_values import Report
from midstream.model.errors import MidstreamError
from midstream.model.events import Event, ResultsRejected, RowsLate, RowsRejected
from midstream.model.words import counted
from midstream.sinks import FileSink
from midstream.sinks.contract import anything
from midstream.sinks.formats import parquet_rows
from midstream.storage.places import storage_at

Source = tuple[str, str]
"""The kind of an output for lost rows (`late`, `dead_letters` or `rejected`) and its stream or query."""

_WORDS = {LATE: "late", DEAD_LETTERS: "dead letters", REJECTED: "dead letters of query"}
TENFOLD = 10
LOOKED_INTO = 256
"""So many of the newest files of a stream's dead letters are looked into for files that were skipped."""


@dataclass(frozen=True)
class LostRows:
    """How many rows of a stream, or results of a query, were lost of `all`; of a query it is not known of how many."""

    rows: int
    all: int | None = None

    def text(self, source: Source) -> str:
        """Return the count in words.

        >>> LostRows(110_692, 300_000).text(("late", "orders"))
        'late: orders 110,692 (37 %)'
        """
        share = f" ({100 * self.rows / self.all:.0f} %)" if self.all else ""
        return f"{_WORDS[source[0]]}: {source[1]} {self.rows:,}{share}"


def lost_rows(report: Report, before: Mapping[Source, LostRows] | None = None) -> dict[Source, LostRows]:
    """Return what a job has lost, or what it has lost since `before`."""
    found: dict[Source, LostRows] = {}
    for stream in report.streams.values():
        came = stream.rows + stream.late + stream.rejected
        found[LATE, stream.name] = LostRows(stream.late, came)
        found[DEAD_LETTERS, stream.name] = LostRows(stream.rejected, came)
    for query in report.queries.values():
        found[REJECTED, query.name] = LostRows(query.rejected)
    for source, former in (before or {}).items():
        if source in found:
            now = found[source]
            found[source] = LostRows(now.rows - former.rows, None if now.all is None else now.all - (former.all or 0))
    return found


@dataclass
class LostRowsWatch:
    """What `midstream run` has said of lost rows so far; `before` is what was lost before it began."""

    before: Mapping[Source, LostRows] = field(default_factory=dict)
    _said: dict[Source, int] = field(default_factory=dict)

    def news(self, report: Report) -> list[str]:
        """Return a line for each stream or query that begins to lose rows, or has lost ten times as many."""
        lines = []
        for source, lost in lost_rows(report, self.before).items():
            said = self._said.get(source, 0)
            if lost.rows and lost.rows >= TENFOLD * said:
                self._said[source] = lost.rows
                lines.append(f"step {report.step}: {lost.text(source)} so far")
        return lines


def summary_lines(lost: Mapping[Source, LostRows], folders: Folders, step: int) -> list[str]:
    """Return a line for each stream or query that has lost rows: how many, where they lie, and the first reason."""
    lines = []
    for source, one in lost.items():
        if one.rows > 0:
            reason = "" if source[0] == LATE else _first_reason(folders, source, step)
            shown = f", the first: {reason}" if reason else ""
            lines.append(f"{one.text(source)}{shown}, in {folders.rejected(*source)}")
    return lines


def _first_reason(folders: Folders, source: Source, step: int) -> str:
    place = folders.rejected(*source)
    try:
        for _, file in FileSink(place).files(range(step + 1), anything):
            storage = storage_at(place)
            reasons = pc.drop_null(parquet_rows(storage.read(file), storage.place(file)).column("_reason"))
            if len(reasons):
                return str(reasons[0])
    except (MidstreamError, OSError, KeyError):
        return ""
    return ""


@dataclass(frozen=True)
class DeadFile:
    """A file of a stream that could not be read, and that the job goes on without."""

    stream: str
    step: int
    file: str
    reason: str


def dead_files(folders: Folders, report: Report) -> list[DeadFile]:
    """Return the files that a job skipped, as far as they are among the newest dead letters of their streams."""
    found = []
    for stream in report.streams.values():
        place = folders.rejected(DEAD_LETTERS, stream.name)
        storage = storage_at(place)
        letters = FileSink(place).files(range(report.step + 1), anything) if stream.rejected else ()
        for step, name in deque(letters, maxlen=LOOKED_INTO):
            with suppress(MidstreamError, FileNotFoundError):  # The job may go back to an earlier step meanwhile.
                rows = parquet_rows(storage.read(name), storage.place(name))
                if FILE in rows.column_names:
                    of = rows.filter(pc.starts_with(rows.column(REASON), UNREAD)).select([FILE, REASON])
                    found += [DeadFile(stream.name, step, one[FILE], one[REASON]) for one in of.to_pylist()]
    return found


def warn_of_lost_rows(events: Iterable[Event], warned: set[Source], where: str, stacklevel: int = 3) -> None:
    """Warn once for each stream whose rows come late or cannot be read, and each query that has dead letters."""
    for event in events:
        match event:
            case RowsLate(stream=name, rows=rows):
                source, what = (
                    (LATE, name),
                    f"{counted(rows, 'row')} of stream {name} came late: late rows join nothing",
                )
            case RowsRejected(stream=name, rows=rows):
                source, what = (DEAD_LETTERS, name), f"{counted(rows, 'row')} of stream {name} could not be read"
            case ResultsRejected(query=name, rows=rows):
                source, what = (REJECTED, name), f"{counted(rows, 'result')} of query {name} could not be evaluated"
            case _:
                continue
        if source not in warned:
            warned.add(source)
            warnings.warn(
                f"{what} (step {event.step}): see {where}. Later ones are counted, and not warned of",
                stacklevel=stacklevel,
            )
