"""The suite for a sink: if anything interrupts a step, its results are in the sink once.

A job stages, publishes a manifest, commits, and does any of it again after a crash (`docs/semantics.md`, invariant 5).
The suite does so with drawn-up steps and looks at what a reader of the sink sees.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from midstream.model.errors import SinkError
from midstream.model.time_line import Epoch, TimeLine
from midstream.sinks import Frames, Sink, StagedStep, restored
from midstream.sinks.contract import anything
from midstream.storage.local import LocalStorage

QUERY = "a query"

Rows = set[tuple[int, str]]

LINE = TimeLine("suite", (Epoch(1, "first", 0),))
"""The time line of the job."""

WENT_BACK = TimeLine("suite", (Epoch(1, "first", 0), Epoch(2, "second", 1, abandoned=1)))
"""The time line after the job went back from step 1 to step 0."""


@dataclass(frozen=True)
class SinkCase:
    """A sink under test, with a folder of its own.

    `make` returns the sink, which keeps its data below the folder. `read` returns every row that a reader of the sink
    sees, with the columns `k` (int64) and `s` (string). `takes_back` is true if `forget_after` takes rows back.
    """

    make: Callable[[Path], Sink]
    read: Callable[[Path], Iterable[dict[str, Any]]]
    takes_back: bool = True
    frames: Frames | None = None


def check_sink(case: SinkCase) -> None:
    """Raise an `AssertionError` if a sink breaks a promise of the contract.

    The error names the promise. During the check `StagedStep.frame` returns an Arrow table, as in an embedded engine.
    If `case.frames` is set, `StagedStep.frame` returns the result of `case.frames(step)`.

    >>> import pyarrow.parquet
    >>> from midstream.sinks import files
    >>> def rows(folder):
    ...     found = [pyarrow.parquet.read_table(file) for file in folder.glob("step=*/*")]
    ...     return [row for table in found for row in table.to_pylist()]
    >>> check_sink(SinkCase(files, rows))
    """
    for check in CHECKS:
        with tempfile.TemporaryDirectory() as folder:
            check(_Bench(case, Path(folder)))


@dataclass(frozen=True)
class _Bench:
    case: SinkCase
    root: Path

    @property
    def place(self) -> Path:
        return self.root / "sink"

    def sink(self) -> Sink:
        """Make the sink as a job that has just started makes it."""
        self.place.mkdir(exist_ok=True)
        made = self.case.make(self.place)
        made.open()
        made.open()
        return made

    def stage(
        self, step: int, rows: Rows, attempt: str = "one", sink: Sink | None = None, line: TimeLine = LINE
    ) -> StagedStep:
        """Stage a step in two files, as the tasks of an attempt do."""
        staging = (sink or self.sink()).staging(LocalStorage(self.root / "scratch")).of(line.stamp(step))
        parts = sorted(rows)[::2], sorted(rows)[1::2]
        written = [staging.write(f"lane-{n}-{attempt}", _table(part)) for n, part in enumerate(parts) if part]
        return StagedStep(QUERY, step, line, staging, tuple(written), self.case.frames)

    def holds(self, rows: Rows, promise: str) -> None:
        seen = sorted((row["k"], row["s"]) for row in self.case.read(self.place))
        assert seen == sorted(rows), f"{promise}: a reader sees {seen}, not {sorted(rows)}"


FIRST: Rows = {(1, "a"), (2, "b"), (3, "c")}
SECOND: Rows = {(4, "d"), (5, "e")}
OTHER: Rows = {(4, "d"), (6, "f"), (7, "g")}


def _shows_nothing_early(bench: _Bench) -> None:
    staged = bench.stage(0, FIRST)
    bench.holds(set(), "nothing shows before the commit")
    staged.staging.clear()
    bench.holds(set(), "what was staged for nothing never shows")


def _commits_once(bench: _Bench) -> None:
    staged = bench.stage(0, FIRST)
    bench.sink().commit(staged)
    bench.holds(FIRST, "a step that is committed shows")
    bench.sink().commit(staged)
    bench.holds(FIRST, "committing again, the files still there, changes nothing")
    staged.staging.clear()
    bench.sink().commit(staged)
    bench.holds(FIRST, "committing again, the files gone, changes nothing")


def _commits_what_counts(bench: _Bench) -> None:
    # Tasks died between staging and the commit; others did their work again, in the same folder.
    bench.stage(0, OTHER, "died")
    staged = bench.stage(0, FIRST, "counts")
    bench.sink().commit(staged)
    staged.staging.clear()
    bench.holds(FIRST, "only the files of the attempt that counts are committed")


def _tells_time_lines(bench: _Bench) -> None:
    # Only of a sink that can tell whose steps it has.
    assert bench.sink().newest(QUERY) is None, "an empty sink has no newest step"
    for step, rows in enumerate((FIRST, SECOND)):
        staged = bench.stage(step, rows)
        bench.sink().commit(staged)
        staged.staging.clear()
        if (newest := bench.sink().newest(QUERY)) is None:
            return
        assert newest == LINE.stamp(step), f"the newest step is {LINE.stamp(step)}, not {newest}"
    stranger = bench.stage(1, OTHER, line=TimeLine("another job", LINE.epochs))
    with suppress(SinkError):
        bench.sink().commit(stranger)
        raise AssertionError("the sink accepted a step that another job has written, and must refuse this step")
    bench.holds(FIRST | SECOND, "a step that was refused changes nothing")
    if bench.case.takes_back:
        again = bench.stage(1, OTHER, line=WENT_BACK)
        bench.sink().commit(again)
        bench.holds(FIRST | OTHER, "a repeated step replaces the one that was given up")


def _goes_back(bench: _Bench) -> None:
    for step, rows in enumerate((FIRST, SECOND)):
        staged = bench.stage(step, rows)
        bench.sink().commit(staged)
        staged.staging.clear()
    bench.sink().forget_after(QUERY, 1, anything)
    bench.holds(FIRST | SECOND, "forgetting what comes after the newest step forgets nothing")
    bench.sink().check_forget(QUERY, 0, anything)
    bench.holds(FIRST | SECOND, "to see whether it can go back changes nothing")
    bench.sink().forget_after(QUERY, 0, anything)
    bench.sink().forget_after(QUERY, 0, anything)
    if bench.case.takes_back:
        bench.holds(FIRST, "going back takes later steps away")
    staged = bench.stage(1, OTHER)
    bench.sink().commit(staged)
    bench.holds(FIRST | OTHER, "a step done again replaces what it gave before")


def _is_made_again(bench: _Bench) -> None:
    # From what a manifest says of it; a function is given anew.
    said = bench.sink().to_json()
    assert json.loads(json.dumps(said)) == said, f"to_json gives JSON values, not {said!r}"
    with suppress(SinkError):  # It need not be installed.
        again = restored(said, str(bench.root / "default"))
        assert again is None or again.to_json() == said, "a sink made of to_json says the same of itself"
    kept = bench.sink()
    staged = bench.stage(0, FIRST, sink=kept)
    bench.sink().commit(staged)
    bench.holds(FIRST, "what one run has staged the next can commit")


def _tells_steps(bench: _Bench) -> None:
    # Equal rows of two steps are two results.
    counted = 0
    for step in (0, 1):
        bench.sink().commit(bench.stage(step, {(1, "a")}))
        counted = len(list(bench.case.read(bench.place)))
    assert counted == 2, f"equal rows of two steps both show: a reader sees {counted}"


CHECKS = (
    _shows_nothing_early,
    _commits_once,
    _commits_what_counts,
    _goes_back,
    _is_made_again,
    _tells_steps,
    _tells_time_lines,
)


def _table(rows: Iterable[tuple[int, str]]) -> pa.Table:
    return pa.table(
        {"k": [k for k, _ in rows], "s": [s for _, s in rows]}, pa.schema([("k", "int64"), ("s", "string")])
    )
