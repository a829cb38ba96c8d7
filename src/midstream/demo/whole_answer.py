"""The answer of a database over the whole input, to hold a running query's answer against."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from midstream.demo.acts import Act
from midstream.demo.flights import Replay
from midstream.model.errors import InputError
from midstream.model.extras import install

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True)
class AnswerCheck:
    """How an answer compares with the database's, as multisets of rows; `highlights` is a look at the answer."""

    rows: int
    expected_rows: int
    missing: int
    surplus: int
    columns: tuple[str, ...]
    highlights: tuple[tuple[Any, ...], ...]

    @property
    def equal(self) -> bool:
        """Whether every row is there as often as it should be, and no other."""
        return self.missing == 0 and self.surplus == 0


def check(act: Act, replays: Mapping[str, Replay], results: Path) -> AnswerCheck:
    """Compare the Parquet files below `results` with what DuckDB answers over the whole input."""
    if importlib.util.find_spec("duckdb") is None:
        raise InputError("DuckDB is not installed", place="package duckdb", remedy=install("demo"))
    import duckdb

    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        for stream in act.streams:
            files = _quoted(replays[stream].folder / "*.parquet")
            rows = f"SELECT * REPLACE (epoch_us(ts) AS ts) FROM read_parquet({files})"
            database.execute(f"CREATE TABLE {stream} AS {rows}")
        database.execute(f"CREATE TABLE expected AS {act.expected}")
        _read_results(database, results)
        found = database.execute(act.summary)
        columns = tuple(str(column[0]) for column in found.description or ())
        return AnswerCheck(
            _count(database, "result"),
            _count(database, "expected"),
            _count(database, "(FROM expected EXCEPT ALL FROM result)"),
            _count(database, "(FROM result EXCEPT ALL FROM expected)"),
            columns,
            tuple(map(tuple, database.execute(act.summary).fetchall())),
        )


def _read_results(database: DuckDBPyConnection, results: Path) -> None:
    if not any(results.rglob("*.parquet")):
        database.execute("CREATE TABLE result AS FROM expected LIMIT 0")
        return
    rows = f"read_parquet({_quoted(results / '**' / '*.parquet')}, hive_partitioning = false)"
    database.execute(f"CREATE TABLE result AS SELECT * REPLACE (epoch_us(moment) AS moment) FROM {rows}")


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _count(database: DuckDBPyConnection, relation: str) -> int:
    row = database.execute(f"SELECT count(*) FROM {relation}").fetchone()
    assert row is not None
    return int(row[0])
