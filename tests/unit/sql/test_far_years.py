"""Times beyond the years that Arrow's calendar has are what DuckDB has."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import midstream as ms

FUNCTIONS = (
    *(
        f"{name}(ts)"
        for name in ("year", "quarter", "month", "week", "day", "dayofweek", "dayofyear", "hour", "minute")
    ),
    *(f"date_trunc('{unit}', ts)" for unit in ("year", "quarter", "month", "week", "day", "hour", "second")),
    *(f"date_diff('{unit}', TIMESTAMP '2000-02-29', ts)" for unit in ("year", "quarter", "month", "day")),
    "last_day(ts)",
    "strftime(ts, '%Y-%m-%d %H')",
    "CAST(ts AS VARCHAR)",
    "CAST(ts AS DATE)",
    "CAST(ts AS VARCHAR) || 'x'",
    "dayname(ts)",
    "monthname(ts)",
    "EXTRACT(week FROM ts)",
)
WORDS = [
    1_700_000_000_000 * 10**6,
    0,
    2**60 + 1,
    -(2**60) + 7,
    2**61 + 123_456,
    971_890_963_199_999_999,
    971_890_963_200_000_000,
    -62_135_596_800_000_000,
    -62_135_596_800_000_001,
    253_402_300_800_000_000,
    -62_167_219_200_000_000,
    None,
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_they_are_those_of_duckdb(function: str) -> None:
    draw = np.random.default_rng(7).integers(-(2**61), 2**61, 200).tolist()
    words = [*WORDS, *(word for word in draw if abs(word) < 2**60)]
    if function in ("last_day(ts)", "CAST(ts AS DATE)") or "date_trunc" in function:
        words = [word for word in words if word is None or abs(word) < 2**60]
    if "'quarter'" in function:  # DuckDB counts the quarters before the year 0 from 0 on in both directions.
        words = [word for word in words if word is None or word >= WORDS[-2]]
    engine = ms.Engine()
    engine.create_stream("A", "n BIGINT, ts TIMESTAMP, at TIMESTAMP", timestamp="at")
    engine.add_query("q", f"SELECT n, {function} AS x FROM A")
    rows = pa.table(
        {
            "n": range(len(words)),
            "ts": pa.array(words, pa.timestamp("us")),
            "at": pa.array([0] * len(words), pa.timestamp("us")),
        }
    )
    found = engine.push({"A": rows})["q"]
    duck = duckdb.connect()
    given = duck.execute("SELECT x::VARCHAR FROM found ORDER BY n").fetchall()
    wanted = duck.execute(f"SELECT ({function})::VARCHAR FROM rows ORDER BY n").fetchall()
    assert given == wanted
    assert rows.num_rows == found.num_rows


def test_groups_by_year_beyond_32767_are_apart() -> None:
    engine = ms.Engine()
    engine.create_stream("A", "ts TIMESTAMP", timestamp="ts", lateness="30000000 days")
    engine.add_query("q", "SELECT year(ts) AS y, COUNT(*) AS n FROM A GROUP BY year(ts), TUMBLE(ts, '1 day')")
    engine.push({"A": pa.table({"ts": pa.array([1_700_000_000_000 * 10**6, 0], pa.timestamp("us"))})})
    late = pa.table({"ts": pa.array([2**62 - 2], pa.timestamp("us"))})
    assert {row["y"] for row in engine.push({"A": late})["q"].to_pylist()} == {55840, 1970}


DAYS = [20_000_000, 12_000_000, 0, -800_000, -20_000_000, -719_162, -719_163, -719_528, -719_529, 2_932_896, 2_932_897]


@pytest.mark.parametrize(
    "function",
    [
        "CAST(d AS VARCHAR)",
        "make_date(year(d), month(d), day(d))",
        "year(d)",
        "week(d)",
        "last_day(d)",
        "date_trunc('month', d)",
        "d + INTERVAL 1 DAY",
    ],
)
def test_dates_are_those_of_duckdb(function: str) -> None:
    engine = ms.Engine()
    engine.create_stream("A", "d DATE, at TIMESTAMP", timestamp="at")
    engine.add_query("q", f"SELECT CAST({function} AS VARCHAR) AS x FROM A")
    dates = pa.array(DAYS, pa.int32()).cast(pa.date32())
    found = engine.push({"A": pa.table({"d": dates, "at": pa.array([0] * len(DAYS), pa.timestamp("us"))})})
    of_day = f"(SELECT CAST({function} AS VARCHAR) FROM (SELECT DATE '1970-01-01' + n AS d))"
    wanted = duckdb.execute(f"SELECT {of_day} FROM UNNEST({DAYS}) AS t(n)").fetchall()
    assert [(text,) for text in found["q"]["x"].to_pylist()] == wanted
