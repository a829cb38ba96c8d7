"""What a suite is made of: window joins drawn at random, what they must answer, and failures that say where.

Answers are computed from scratch by DuckDB over all rows so far.
"""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from midstream.model.errors import InputError
from midstream.model.extras import install
from midstream.model.window import SECOND

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Contract = TypeVar("Contract")

STEP = 2 * SECOND
"""Event time moves on by this with every step; rows spread over twice as much, so they come out of order."""

SCHEMA = pa.schema([("u", pa.int64()), ("k", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us"))])
"""`u` tells rows apart, `k` is a key, NULL at times, `v` is filtered by."""

WINDOWS = (0, SECOND, 2 * SECOND, 3 * SECOND, 5 * SECOND, 8 * SECOND)
TIES = ("{a}.k = {b}.k", "{a}.k = {b}.k AND {a}.v = {b}.v", "{a}.k BETWEEN {b}.k - 1 AND {b}.k + 1")
FILTERS = ("{a}.v > 0", "{a}.v > 1", "{b}.v < 2", "{b}.k = 1")

Row = tuple[Any, ...]


@dataclass(frozen=True)
class DrawnJoin:
    """A join of streams named by letters, its condition between neighbours, a window for each, and its filters.

    >>> DrawnJoin("AB", "{a}.k = {b}.k", (5, 7), ("{a}.v > 0",)).cql()
    'SELECT A.u AS a, B.u AS b, _ts FROM A [RANGE 5 MICROSECONDS], B [RANGE 7 MICROSECONDS] WHERE A.k = B.k AND A.v > 0'
    """

    streams: str
    tie: str
    windows: tuple[int, ...]
    filters: tuple[str, ...] = ()

    @property
    def conditions(self) -> str:
        """The text of WHERE."""
        ties = [self.tie.format(a=a, b=b) for a, b in zip(self.streams, self.streams[1:], strict=False)]
        return " AND ".join((*ties, *(text.format(a=self.streams[0], b=self.streams[1]) for text in self.filters)))

    def cql(self) -> str:
        """Write the query's text; its answer names the rows it joins, and when."""
        names = ", ".join(f"{name}.u AS {name.lower()}" for name in self.streams)
        sources = zip(self.streams, self.windows, strict=True)
        sized = ", ".join(f"{name} [RANGE {size} MICROSECONDS]" for name, size in sources)
        return f"SELECT {names}, _ts FROM {sized} WHERE {self.conditions}"

    def sql(self, where: str) -> str:
        """Write the answer over all rows so far in SQL: no row is older than its window when the last one comes."""
        last = f"greatest({', '.join(f'{name}.ts' for name in self.streams)})"
        young = [f"{last} - {name}.ts <= {size}" for name, size in zip(self.streams, self.windows, strict=True)]
        names = ", ".join(f"{name}.u" for name in self.streams)
        conditions = " AND ".join((self.conditions, *young))
        return f"SELECT {names}, {last} FROM {', '.join(self.streams)} WHERE {conditions} {where}"


@dataclass(frozen=True)
class Family:
    """Joins of the same streams by the same condition, which differ in windows and in which of two filters they have.

    No more than two, so that no scheme has reason to refuse a query.
    """

    streams: str
    tie: str
    filters: tuple[str, ...]

    @staticmethod
    def draw(rng: Random) -> Family:
        """Draw any family."""
        return Family(rng.choice(("AB", "AB", "ABC")), rng.choice(TIES), tuple(rng.sample(FILTERS, 2)))

    def join(self, rng: Random) -> DrawnJoin:
        """Draw any join of the family: with the same window on all streams or one for each."""
        size = rng.choice(WINDOWS)
        windows = tuple(size if rng.random() < 0.6 else rng.choice(WINDOWS) for _ in self.streams)
        return DrawnJoin(self.streams, self.tie, windows, tuple(f for f in self.filters if rng.random() < 0.4))


def draw_rows(rng: Random, streams: str, step: int) -> dict[str, pa.Table]:
    """Draw the rows of a step: none is late where the streams allow for a lateness of `STEP`."""
    found = {}
    for name in streams:
        count = rng.choice((0, 2, 4, 6))
        columns = {
            "u": [100 * step + number for number in range(count)],
            "k": [rng.choice((0, 1, 1, 2, None)) for _ in range(count)],
            "v": [rng.randrange(4) for _ in range(count)],
            "ts": [step * STEP + rng.randrange(2 * STEP + 1) for _ in range(count)],
        }
        found[name] = pa.table(columns, schema=SCHEMA)
    return found


class Oracle:
    """Tables of a database with all rows so far, each with the step it came in."""

    def __init__(self, streams: Iterable[str]) -> None:
        self._database = _database().cursor()
        for name in streams:
            self._database.execute(f"CREATE TEMP TABLE {name} (u BIGINT, k BIGINT, v BIGINT, ts BIGINT, step BIGINT)")

    def __enter__(self) -> Oracle:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._database.close()

    def push(self, tables: Mapping[str, pa.Table], step: int) -> None:
        """Take the rows of a step."""
        for name, table in tables.items():
            rows = [[*row.values(), step] for row in _in_microseconds(table).to_pylist()]
            if rows:
                places = ", ".join(["(?, ?, ?, ?, ?)"] * len(rows))
                self._database.execute(f"INSERT INTO {name} VALUES {places}", [value for row in rows for value in row])

    def answer(self, join: DrawnJoin, step: int, seen: str = "true") -> Counter[Row]:
        """Return what a step brings to a query that sees the rows of a condition over `{}.ts` and `{}.step`."""
        came = f"greatest({', '.join(f'{name}.step' for name in join.streams)}) = {step}"
        return self._rows(join.sql(" ".join(f"AND {text}" for text in (came, *map(seen.format, join.streams)))))

    def _rows(self, sql: str) -> Counter[Row]:
        return Counter(self._database.execute(sql).fetchall())


def answer_over(join: DrawnJoin, steps: Sequence[Mapping[str, pa.Table]]) -> Counter[Row]:
    """Compute all that a database answers over the rows of all steps."""
    with _database().cursor() as database:
        for name in join.streams:
            database.register(name, _in_microseconds(pa.concat_tables([tables[name] for tables in steps])))
        return Counter(database.execute(join.sql("")).fetchall())


@cache
def _database() -> DuckDBPyConnection:
    # One for this process, because making one takes longer than most queries; each cursor has tables of its own.
    if importlib.util.find_spec("duckdb") is None:
        raise InputError("DuckDB is not installed", place="package duckdb", remedy=install("testing"))
    import duckdb

    return duckdb.connect(config={"threads": 1})


def _in_microseconds(table: pa.Table) -> pa.Table:
    return table.set_column(3, "ts", table["ts"].cast(pa.int64()))


@contextmanager
def installed(found: dict[str, Contract], name: str, one: Contract) -> Iterator[None]:
    """Add `one` to the contracts that are found, within the context, as if its package were installed."""
    before = dict(found)
    found[name] = one
    try:
        yield
    finally:
        found.clear()
        found.update(before)


@contextmanager
def located(where: str) -> Iterator[None]:
    """Turn any failure within the context into an `AssertionError` that begins with the place."""
    try:
        yield
    except Exception as error:
        raise AssertionError(f"{where}: {error}") from error
