"""The windows that conditions between the timestamps of a join imply."""

from __future__ import annotations

import pyarrow as pa
import pytest

import midstream as ms
from midstream.logical.query import query_of
from midstream.model.errors import LanguageError
from midstream.model.schema import StreamSchema
from midstream.sql.parse import parse_query

COLUMNS = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us")), ("sent", pa.timestamp("us"))])
STREAMS = {name: StreamSchema(name, COLUMNS, "ts") for name in "ABC"} | {
    "N": StreamSchema("N", pa.schema([("k", pa.int64()), ("ts", pa.timestamp("ns"))]), "ts"),
    "I": StreamSchema("I", pa.schema([("k", pa.int64()), ("ts", pa.int64())]), "ts"),
    "Z": StreamSchema("Z", pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us", "UTC"))]), "ts"),
    "D": StreamSchema("D", pa.schema([("k", pa.int64()), ("day", pa.date32())]), "day"),
}
SECOND = 1_000_000


def windows(text: str) -> dict[str, int | None]:
    return {s.alias: s.window.size if s.window else None for s in parse_query(text, STREAMS).sources}


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("A.ts BETWEEN B.ts - INTERVAL 10 SECONDS AND B.ts + INTERVAL 5 SECONDS", {"A": 10, "B": 5}),
        ("B.ts >= A.ts AND B.ts <= A.ts + INTERVAL 1 MINUTE", {"A": 60, "B": 0}),
        ("A.ts = B.ts", {"A": 0, "B": 0}),
        ("`A`.`ts` - B.ts <= INTERVAL 3 SECONDS AND `B`.ts <= A.ts", {"A": 0, "B": 3}),
        ("A.ts BETWEEN B.ts + INTERVAL 1 SECOND AND B.ts + INTERVAL 5 SECONDS", {"A": 0, "B": 5}),
        ("B.ts = A.ts + INTERVAL 1 DAY", {"A": 86_400, "B": 0}),
        ("A.ts = B.ts - INTERVAL 1 DAY", {"A": 86_400, "B": 0}),
        ("A._ts + INTERVAL 1 MINUTE = B._ts", {"A": 60, "B": 0}),
    ],
)
def test_of_two_streams(where: str, expected: dict[str, int]) -> None:
    text = f"SELECT A.k FROM A, B WHERE A.k = B.k AND {where}"
    assert windows(text) == {alias: size * SECOND for alias, size in expected.items()}


def test_of_streams_that_are_tied_by_others() -> None:
    chain = "B.ts BETWEEN A.ts AND A.ts + INTERVAL 1 MINUTE AND C.ts BETWEEN B.ts AND B.ts + INTERVAL 1 MINUTE"
    assert windows(f"SELECT A.k FROM A, B, C WHERE {chain}") == {"A": 120 * SECOND, "B": 60 * SECOND, "C": 0}


def test_the_window_of_another_source_tells_of_this_one() -> None:
    text = "SELECT A.k FROM A [RANGE 5 SECONDS], B WHERE A.ts >= B.ts AND A.ts < B.ts + INTERVAL 1 MINUTE"
    assert windows(text) == {"A": 5 * SECOND, "B": 60 * SECOND - 1}


def test_windows_that_are_written_stay() -> None:
    text = "SELECT A.k FROM A, B WHERE A.ts = B.ts WINDOW 9 SECONDS"
    assert windows(text) == {"A": 9 * SECOND, "B": 9 * SECOND}


def test_nanoseconds_are_cut_off_so_that_a_microsecond_is_added() -> None:
    assert windows("SELECT N.k FROM N, B WHERE N.ts BETWEEN B.ts - INTERVAL 1 SECOND AND B.ts")["N"] == SECOND + 1


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("DATE_TRUNC('hour', A.ts) = DATE_TRUNC('hour', B.ts)", {"A": 3_600 * SECOND - 1, "B": 3_600 * SECOND - 1}),
        ("CAST(A.ts AS DATE) = CAST(B.ts AS DATE)", {"A": 86_400 * SECOND - 1, "B": 86_400 * SECOND - 1}),
        ("CAST(A.ts AS DATE) = CAST(B.ts AS DATE) + 1", {"A": 0, "B": 2 * 86_400 * SECOND - 1}),
        ("DATE_TRUNC('minute', A.ts) = B.ts", {"A": 0, "B": 60 * SECOND - 1}),
        ("CAST(A.ts AS TIMESTAMP_S) = B.ts", {"A": SECOND, "B": SECOND}),
        ("DATE_TRUNC('day', A.ts) BETWEEN B.ts AND B.ts + INTERVAL 1 DAY", {"A": 0, "B": 2 * 86_400 * SECOND - 1}),
    ],
)
def test_of_times_that_are_cut_off(where: str, expected: dict[str, int]) -> None:
    assert windows(f"SELECT A.k FROM A, B WHERE A.k = B.k AND {where}") == expected


def test_days() -> None:
    assert windows("SELECT D.k FROM D, B WHERE B.ts BETWEEN D.day AND D.day + INTERVAL 1 DAY")["D"] == 86_400 * SECOND


@pytest.mark.parametrize("where", ["A.ts = Z.ts", "A.ts <= Z.ts AND Z.ts <= A.ts", "CAST(A.ts AS TIMESTAMPTZ) = Z.ts"])
def test_a_time_that_is_given_a_zone_stays_the_same_time(where: str) -> None:
    assert windows(f"SELECT A.k FROM A, Z WHERE {where}") == {"A": 0, "Z": 0}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT A.k FROM A, B WHERE A.k = B.k",
        "SELECT A.k FROM A, B WHERE A.ts < B.ts",
        "SELECT A.k FROM A, B WHERE A.sent = B.ts",  # Not the event time.
        "SELECT A.k FROM A, B WHERE EXTRACT(hour FROM A.ts) = EXTRACT(hour FROM B.ts)",
        "SELECT A.k FROM A, B WHERE DATE_TRUNC('hour', A.sent) = DATE_TRUNC('hour', B.ts)",
        "SELECT A.k FROM A, B WHERE A.ts = B.ts OR A.k = B.k",
        "SELECT I.k FROM I, A i2 WHERE I.ts - I.k = 3",
        "SELECT A.k FROM A [ROWS 3], B WHERE A.ts = B.ts AND A.k > 1 OR A.k = B.k",
        "SELECT COUNT(*) FROM A, B WHERE A.ts = B.ts EVERY 5 SECONDS",
    ],
)
def test_what_is_not_bounded_is_refused(text: str) -> None:
    with pytest.raises(LanguageError, match="has no window"):
        windows(text)


SLIDING = "TABLE(HOP(TABLE {}, DESCRIPTOR(ts), INTERVAL '1' SECOND, INTERVAL '2' SECONDS))"
TUMBLED = "SELECT k, ts, window_end FROM TUMBLE({}, ts, INTERVAL 3 SECONDS)"
COUNTED = "SELECT k, COUNT(*) AS n, window_end FROM {} GROUP BY k, TUMBLE(ts, INTERVAL 3 SECONDS)"


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (f"{SLIDING.format('A')} L", f"{SLIDING.format('B')} R", {"L": 2 * SECOND - 1, "R": 2 * SECOND - 1}),
        (f"{SLIDING.format('A')} L", "TUMBLE(B, ts, INTERVAL 1 SECOND) R", {"L": 2 * SECOND - 1, "R": SECOND - 1}),
        ("rows_a L", "rows_b R", {"L": 3 * SECOND - 1, "R": 3 * SECOND - 1}),
        ("counts_a L", "counts_b R", {"L": 0, "R": 0}),
        ("counts_a L", "rows_b R", {"L": 0, "R": 3 * SECOND - 1}),
    ],
)
def test_columns_of_answers_lie_near_their_time(left: str, right: str, expected: dict[str, int]) -> None:
    one = ms.Engine()
    for name in "AB":
        one.create_stream(name, COLUMNS, timestamp="ts")
        one.add_query(f"rows_{name}", TUMBLED.format(name))
        one.add_query(f"counts_{name}", COUNTED.format(name))
    one.add_query("q", f"SELECT L.k FROM {left} JOIN {right} ON L.k = R.k AND L.window_end = R.window_end")
    one.push({})
    found = query_of(one.manifest.queries["q"]).sources
    assert {s.alias: s.window and s.window.size for s in found} == expected
