"""Drivers that die as they commit a step: `python -m tests.sinks.crash_step`.

It reads lines of JSON, `[SINK, SCRATCH, POINT]`, and for each forks a driver, for to start one from nothing takes
seconds; then it prints how that ended.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from midstream.sinks import Sink, StagedStep, as_sink
from tests.sinks.steps import staged

STEP = 1
ROWS = pa.table({"k": pa.array(range(100)), "s": ["x"] * 100})


def the_step(sink: Sink, scratch: Path) -> StagedStep:
    """The step that is committed when the driver dies, and by the next one again."""
    return staged(sink, scratch, STEP, ROWS)


def die(*_: Any, **__: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def amid_rows_of_postgresql() -> None:
    from midstream.sinks import postgresql

    original = postgresql.copy_text

    def half(table: pa.Table) -> Iterator[bytes]:
        text = b"".join(original(table))
        yield text[: len(text) // 2]
        die()

    postgresql.copy_text = half


def before_postgresql_commits() -> None:
    import psycopg

    psycopg.Connection.commit = die  # type: ignore[method-assign]


def amid_rows_of_delta() -> None:
    import deltalake

    original = deltalake.write_deltalake

    def half(table: Any, rows: pa.Table, **options: Any) -> None:
        def batches() -> Iterator[pa.RecordBatch]:
            yield rows.slice(0, 50).to_batches()[0]
            die()

        original(table, pa.RecordBatchReader.from_batches(rows.schema, batches()), **options)

    deltalake.write_deltalake = half  # type: ignore[assignment]


def before_iceberg_commits() -> None:
    from pyiceberg.table import Table

    Table._do_commit = die  # type: ignore[method-assign]


POINTS: dict[str, list[Callable[[], None]]] = {
    "postgresql": [amid_rows_of_postgresql, before_postgresql_commits],
    "delta": [amid_rows_of_delta],
    "iceberg": [before_iceberg_commits],
}
"""Where in its writing each sink is cut short; all of them also before, and when they have written."""


def main(sink: Sink, scratch: Path, point: str) -> None:
    """Stage and commit, and die there."""
    given = the_step(sink, scratch)
    if point == "before":
        die()
    if point != "after":
        globals()[point]()
    sink.commit(given)
    if point == "after":
        die()
    os._exit(1)


if __name__ == "__main__":
    for line in sys.stdin:
        said, folder, where = json.loads(line)
        driver = os.fork()
        if not driver:
            main(as_sink(said, "none"), Path(folder), where)
        print(os.waitstatus_to_exitcode(os.waitpid(driver, 0)[1]), flush=True)
