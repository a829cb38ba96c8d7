"""Sinks besides files in the rounds of random kills, and what stands in each of them by step."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

import midstream as ms
from midstream.sinks.delta import STEP
from midstream.sinks.postgresql import STEP_COLUMN, STEPS

DSN = "MIDSTREAM_TEST_DSN"
"""The environment variable that has the connection string of a PostgreSQL server, where one runs."""


@dataclass(frozen=True)
class ReplaceStep:
    """A function of a step's results that may be called again: it replaces what it has written of the step."""

    folder: Path

    def __call__(self, results: Any, step: int, query: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        half = self.folder / f".{step}.{os.getpid()}"
        pq.write_table(results if isinstance(results, pa.Table) else results.toArrow(), half)
        half.rename(self.folder / f"{step}.parquet")

    def by_step(self, steps: int) -> list[pa.Table | None]:
        paths = [self.folder / f"{step}.parquet" for step in range(steps)]
        return [pq.read_table(path) if path.exists() else None for path in paths]


def other_sinks(root: Path) -> dict[str, ms.sinks.Sink]:
    """By the name of a query the sink that its results go to; none is on a store, whatever the checkpoint is on."""
    found: dict[str, ms.sinks.Sink] = {
        "called": ms.sinks.FunctionSink(ReplaceStep(root / "called")),
        "delta": ms.sinks.DeltaSink(str(root / "delta")),
    }
    if dsn := os.environ.get(DSN):
        found["postgresql"] = ms.sinks.PostgresqlSink(_table(root), dsn)
    return found


def by_step(root: Path, query: str, steps: int, columns: Sequence[str]) -> list[pa.Table | None]:
    """What stands in one of the sinks."""
    if query == "called":
        return ReplaceStep(root / "called").by_step(steps)
    return _in_delta(root / "delta", steps) if query == "delta" else _in_postgresql(_table(root), steps, columns)


def forget(root: Path) -> None:
    """Remove what a round has left outside its folder."""
    if dsn := os.environ.get(DSN):
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(f"DROP TABLE IF EXISTS {_table(root)}")  # type: ignore[arg-type]


def _table(root: Path) -> str:
    return "t" + "".join(filter(str.isalnum, root.name.lower()))


def _in_delta(path: Path, steps: int) -> list[pa.Table | None]:
    found: list[pa.Table | None] = [None] * steps
    if DeltaTable.is_deltatable(str(path)):
        for commit in DeltaTable(str(path)).history():
            if STEP in commit:
                after, before = (DeltaTable(str(path), commit["version"] - one).file_uris() for one in (0, 1))
                assert found[int(commit[STEP])] is None, f"step {commit[STEP]} was appended twice"
                found[int(commit[STEP])] = pa.concat_tables(pq.read_table(file) for file in {*after} - {*before})
    return found


def _in_postgresql(table: str, steps: int, columns: Sequence[str]) -> list[pa.Table | None]:
    found: list[pa.Table | None] = [None] * steps
    with psycopg.connect(os.environ[DSN]) as connection:
        names, steps_of = ", ".join(columns), f"{table} JOIN {STEPS} s ON s.id = {table}.{STEP_COLUMN}"
        rows = connection.execute(f"SELECT s.step, {names} FROM {steps_of}").fetchall()  # type: ignore[arg-type]
    for step in {row[0] for row in rows}:
        own = zip(*(row[1:] for row in rows if row[0] == step), strict=True)
        found[step] = pa.table(dict(zip(columns, map(list, own), strict=True)))
    return found
