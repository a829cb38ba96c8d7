"""What a peer reports, and the mark by which two answers are known to be equal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa


@dataclass(frozen=True)
class Batch:
    """One step of a peer: rows that came in, and the seconds from its trigger to its commit."""

    rows: int
    seconds: float


@dataclass(frozen=True)
class Answer:
    """How many rows an answer has, and a sum over the hashes of its rows that does not depend on their order."""

    rows: int
    mark: str


@dataclass(frozen=True)
class Measurement:
    """What one peer did with one scenario."""

    peer: str
    scenario: str
    batches: tuple[Batch, ...]
    answer: Answer
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Seconds of all batches."""
        return sum(batch.seconds for batch in self.batches)

    @property
    def steady(self) -> tuple[Batch, ...]:
        """The last half of the batches: the state is full and the machine warm."""
        return self.batches[len(self.batches) // 2 :]

    @property
    def steady_rate(self) -> float:
        """Rows in a second over the steady batches."""
        return sum(batch.rows for batch in self.steady) / sum(batch.seconds for batch in self.steady)

    def to_json(self) -> dict[str, Any]:
        """The measurement as JSON values."""
        return {
            "peer": self.peer,
            "scenario": self.scenario,
            "batches": [[batch.rows, round(batch.seconds, 4)] for batch in self.batches],
            "answer": [self.answer.rows, self.answer.mark],
            "notes": dict(self.notes),
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Measurement:
        """The measurement that `to_json` wrote."""
        batches = tuple(Batch(rows, seconds) for rows, seconds in value["batches"])
        return Measurement(value["peer"], value["scenario"], batches, Answer(*value["answer"]), value["notes"])


def answer_of_tables(tables: list[pa.Table], *, by_value: bool = False) -> Answer:
    """The answer that a peer holds in memory.

    By value, 1 is equal to 1.00 and a time is what it is in UTC, whatever their types:

    >>> one, same = pa.table({"n": [1, 2]}), pa.table({"n": [2.0, 1.00001]})
    >>> answer_of_tables([one], by_value=True) == answer_of_tables([same], by_value=True)
    True
    >>> answer_of_tables([one]) == answer_of_tables([same])
    False
    """
    with duckdb.connect() as connection:
        connection.register("answer", pa.concat_tables(tables))
        return _answer(connection, "answer", by_value)


def answer_of_files(folder: Path, *, by_value: bool = False) -> Answer:
    """The answer that a peer wrote as Parquet files into a folder and the folders below it."""
    if not any(folder.rglob("*.parquet")):
        return Answer(0, "0")
    with duckdb.connect() as connection:
        source = f"read_parquet('{folder}/**/*.parquet', hive_partitioning = false)"
        return _answer(connection, source, by_value)


def _answer(connection: duckdb.DuckDBPyConnection, source: str, by_value: bool) -> Answer:
    columns = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
    names = [(f'"{name.replace(chr(34), 2 * chr(34))}"', kind) for name, kind, *_ in columns]
    values = [_value(name, kind) if by_value else name for name, kind in names]
    found = connection.execute(f"SELECT count(*), sum(hash({', '.join(values)})) FROM {source}").fetchone()
    assert found is not None
    return Answer(found[0], str(found[1] or 0))


def _value(name: str, kind: str) -> str:
    """A column in the one type that stands for its kind; numbers are rounded to four digits."""
    if kind.endswith("INT") or kind in ("INTEGER", "UINTEGER", "DOUBLE", "FLOAT") or kind.startswith("DECIMAL"):
        return f"round({name}::DOUBLE, 4)"
    return f"epoch_us({name})" if kind.startswith("TIMESTAMP") else name
