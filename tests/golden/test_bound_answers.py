"""Forms of docs/language_table.md answer as DuckDB does, which reads the same text without its windows.

All rows lie within a second, so every window holds them; rows of later days, with a `k` of their own, end the windows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tests.docs.test_language_table import engine
from tests.golden.test_bound import TEXTS

ENDING = -7
HOUR = 3_600_000_000
BEGIN = 472_222 * HOUR
LEFT_OUT = re.compile(
    r"EVERY|EXCEPT"  # An instant and a change log have no text of DuckDB's.
    r"|\[ROWS"  # Fewer rows than there are.
    r"|COUNT\(DISTINCT k\)|AS tags|^SELECT DATE_TRUNC\('day', ts"  # Ending rows cannot be told from others.
    r"|STRING_AGG"  # In an order of DuckDB's own.
)
STARTS = r"generate_series(time_bucket(\3, ts, TIMESTAMP '1970-01-01') - \4, ts, \3)"
AS_IN_DUCKDB = (
    (
        r"TABLE\((HOP)\(TABLE (\w), DESCRIPTOR\(ts\), (INTERVAL '\d+' \w+), (INTERVAL '\d+' \w+)\)\)",
        rf"(SELECT \2.*, b AS window_start, b + \4 AS window_end FROM \2, unnest({STARTS}) AS t(b) WHERE b + \4 > ts)",
    ),
    (r"\s*\[RANGE[^\]]*\]|\s+WINDOW \d+ \w+", ""),
    (r"TUMBLE\((\w+\.)?\w+, [^()]*\)", "1 = 1"),
)


def drawn(rng: Random) -> pa.Table:
    times = sorted(rng.sample(range(900_000), 12))
    return pa.table(
        {
            "k": pa.array([rng.choice((1, 2, 3, None)) for _ in times], pa.int64()),
            "v": pa.array([rng.choice((1.0, 60.0, 2.5, None)) for _ in times], pa.float64()),
            "s": [rng.choice(("1,2", '{"a": [1]}')) for _ in times],
            "ts": pa.array([BEGIN + time for time in times], pa.timestamp("us")),
        }
    )


def ending(day: int) -> pa.Table:
    moment = pa.array([BEGIN + 24 * HOUR * day], pa.timestamp("us"))
    nothing = pa.nulls(1)
    return pa.table({"k": [ENDING], "v": nothing.cast(pa.float64()), "s": nothing.cast(pa.string()), "ts": moment})


ROWS = {name: drawn(Random(seed)) for seed, name in enumerate("AB", 5)}


def database() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    made.execute("SET threads = 1")
    for name, rows in ROWS.items():
        made.register(name, rows)
    made.register("rates", pa.table({"k": [1, 2], "rate": [1.5, 2.5]}))
    return made


DATABASE = database()


def expected(text: str) -> list[tuple[Any, ...]] | None:
    """What DuckDB answers; None where it does not read the text."""
    for ours, theirs in AS_IN_DUCKDB:
        text = re.sub(ours, theirs, text)
    try:
        return DATABASE.execute(text).fetchall()
    except duckdb.Error:
        return None


def counted(rows: Iterable[tuple[Any, ...]]) -> Counter[str]:
    return Counter(map(repr, rows))


CASES = {text: rows for text in TEXTS if not LEFT_OUT.search(text) and (rows := expected(text)) is not None}


@pytest.mark.parametrize("text", CASES)
def test_a_form_answers_as_duckdb_does(text: str) -> None:
    made = engine()
    made.add_query("q", text)
    found = [made.push(ROWS)["q"]]
    for day in (40, 80, 120, 160):
        found += [made.push({"A": ending(day)})["q"], made.push({"B": ending(day + 20)})["q"]]
    rows = [tuple(row.values()) for table in found for row in table.to_pylist() if ENDING not in row.values()]
    assert counted(rows) == counted(CASES[text])


def test_half_of_the_forms_are_read_by_duckdb_too() -> None:
    assert len(CASES) >= 38
