"""The times of results are of the type of the timestamp columns that a query reads, so that they compare with these."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import midstream as ms
from midstream.sql.parse import parse_query

PLAIN, ZONED = pa.timestamp("us"), pa.timestamp("us", "UTC")
MATCHED = "FROM A, B WHERE A.k = B.k WINDOW 20 SECONDS"
KINDS = [
    ("TIMESTAMP", None, PLAIN), ("TIMESTAMP_NS", None, PLAIN), ("DATE", None, PLAIN), ("VARCHAR", None, PLAIN),
    ("BIGINT", "ms", PLAIN), ("TIMESTAMPTZ", None, ZONED), ("TIMESTAMP WITH TIME ZONE", None, ZONED),
]  # fmt: skip


def engine(first: str, second: str = "TIMESTAMP", *, unit: str | None = None) -> ms.Engine:
    """An engine whose streams A and B have timestamps of these types."""
    made = ms.Engine()
    made.create_stream("A", f"k BIGINT, v INT, ts {first}", timestamp="ts", unit=unit)
    made.create_stream("B", f"k BIGINT, v INT, ts {second}", timestamp="ts")
    return made


def types(made: ms.Engine, sql: str, *names: str) -> list[pa.DataType]:
    """The types of these columns of a query's results."""
    made.add_query("q", sql)
    found: pa.Schema = made.push({"B": rows(0)})["q"].schema
    made.drop_query("q")
    return [found.field(name).type for name in names]


def rows(*seconds: float, v: int = 1) -> pa.Table:
    """Rows of one key at these seconds."""
    times = pa.array([int(second * 1_000_000) for second in seconds], PLAIN)
    return pa.table({"k": [7] * len(seconds), "v": [v] * len(seconds), "ts": times})


@pytest.mark.parametrize(("declared", "unit", "kind"), KINDS)
def test_times_are_of_the_type_of_the_timestamp(declared: str, unit: str | None, kind: pa.DataType) -> None:
    made = engine(declared, unit=unit)
    for window in ("TUMBLE(ts, INTERVAL '10' SECONDS)", "SESSION(ts, INTERVAL '10' SECONDS)"):
        sql = f"SELECT window_start, window_end, COUNT(*) AS n, _ts FROM A GROUP BY {window}"
        assert types(made, sql, "window_start", "window_end", "_ts") == [kind] * 3
    assert types(made, "SELECT k, _ts FROM A", "_ts") == [kind]
    assert types(made, "SELECT MAX(x.n) AS n, _ts FROM (SELECT COUNT(*) AS n FROM A [NOW] EVERY 1 SECOND) AS x [NOW] "
                       "EVERY 1 SECOND", "_ts") == [kind]  # fmt: skip


@pytest.mark.parametrize("reversed", [False, True])
def test_where_one_stream_has_a_zone_results_have(reversed: bool) -> None:
    made = engine(*(("TIMESTAMP", "TIMESTAMPTZ") if reversed else ("TIMESTAMPTZ", "TIMESTAMP")))
    assert types(made, f"SELECT A.k, _ts {MATCHED}", "_ts") == [ZONED]
    assert types(made, f"SELECT COUNT(*) AS n, _ts {MATCHED} EVERY 5 SECONDS", "_ts") == [ZONED]
    assert types(made, "SELECT A.k, _ts FROM A [NOW] EXCEPT ON (k) B [NOW]", "_ts") == [ZONED]
    alone = [types(made, f"SELECT k, _ts FROM {name}", "_ts") for name in "AB"]
    assert alone == ([[PLAIN], [ZONED]] if reversed else [[ZONED], [PLAIN]])


@pytest.mark.parametrize(("declared", "kind"), [("TIMESTAMP", PLAIN), ("TIMESTAMPTZ", ZONED)])
@pytest.mark.parametrize("named", [True, False])
def test_answers_compare_with_streams_without_a_cast(declared: str, kind: pa.DataType, named: bool) -> None:
    """Also as equals, and so that windows are implied by it."""
    made = engine(declared, declared)
    made.add_query("pairs", f"SELECT A.k, A.v{', _ts AS t' if named else ''} {MATCHED}")
    time = "t" if named else "result_time"
    made.add_query("same", f"SELECT p.{time} AS t, b.ts, _ts FROM pairs p, B b WHERE p.{time} = b.ts")
    made.add_query(
        "near", f"SELECT b.ts FROM pairs p, B b WHERE b.ts BETWEEN p.{time} AND p.{time} + INTERVAL 1 SECOND"
    )
    found = made.push({"A": rows(1), "B": rows(3, 4)})
    assert found["same"].schema.types == [kind] * 3
    assert [(row["t"].second, row["ts"].second) for row in found["same"].to_pylist()] == [(3, 3), (4, 4)]
    assert sorted(row["ts"].second for row in found["near"].to_pylist()) == [3, 4, 4]


def test_of_selects_put_together_all_have_a_zone_where_one_has() -> None:
    made = engine("TIMESTAMPTZ")
    both = "SELECT k, _ts AS t FROM A UNION ALL SELECT k, ts AS t FROM B"
    made.add_query("q", f"SELECT t, _ts FROM ({both}) AS x")
    found = made.push({"A": rows(1), "B": rows(2)})["q"]
    assert found.schema.types == [ZONED, ZONED]
    assert sorted(row["t"].second for row in found.to_pylist()) == [1, 2]
    with pytest.raises(ms.MidstreamError, match="have columns of different types") as raised:
        made.add_query("r", "SELECT * FROM (SELECT v FROM A UNION ALL\n SELECT ts AS v FROM B) AS x")
    assert raised.value.place == "line 2, column 2"
    with pytest.raises(ms.MidstreamError, match="have columns of different types") as raised:
        made.add_query("r", "SELECT v, ts FROM A EXCEPT SELECT ts, ts FROM B")
    assert raised.value.place == "line 1, column 28"


@pytest.mark.parametrize(
    ("declared", "unit", "given"),
    [
        ("BIGINT", "s", [3, 1, 2]), ("BIGINT", "ms", [3_000, 1_000, 2_000]),
        ("VARCHAR", None, ["1970-01-01 00:00:03", "1970-01-01 02:00:01+02:00", "1970-01-01T00:00:02Z"]),
    ],
)  # fmt: skip
def test_a_session_starts_with_its_first_row(declared: str, unit: str | None, given: list[Any]) -> None:
    """By the event time: not by the least text, nor by what an integer would be in another unit."""
    made = engine(declared, unit=unit)
    made.add_query("q", "SELECT window_start AS s FROM A GROUP BY k, SESSION(ts, INTERVAL '5' SECONDS) "
                        "HAVING window_start < TIMESTAMP '1970-01-01 00:00:02'")  # fmt: skip
    last = "1970-01-02" if unit is None else 10**6
    found = made.push({"A": pa.table({"k": [7] * 4, "v": [1] * 4, "ts": [*given, last]})})["q"].to_pylist()
    assert found == [{"s": datetime(1970, 1, 1) + timedelta(seconds=1)}]


@pytest.mark.parametrize(("declared", "kind"), [("TIMESTAMP", PLAIN), ("TIMESTAMPTZ", ZONED), ("BIGINT", PLAIN)])
def test_late_rows_and_dead_letters_tell_times_alike(declared: str, kind: pa.DataType) -> None:
    made = engine(declared, unit="us" if declared == "BIGINT" else None)
    made.add_query("q", "SELECT v // (v - 1) AS x FROM A")
    given = rows(9, 1).set_column(2, "ts", rows(9, 1)["ts"].cast(pa.int64())) if declared == "BIGINT" else rows(9, 1)
    made.push({"A": given})
    made.push({"A": given.slice(1)})
    assert made.late["A"].schema.field("_watermark").type == kind
    assert made.dead_letters["q"].schema.field("_ts").type == kind


def test_what_a_query_reads_decides_not_what_it_selects() -> None:
    streams = engine("TIMESTAMPTZ").manifest.streams
    asked = "SELECT B.v, _ts FROM A [NOW], B [NOW] WHERE A.k = B.k"
    assert parse_query(asked, streams).time == ZONED
    assert parse_query("SELECT v FROM B", streams).time == PLAIN
