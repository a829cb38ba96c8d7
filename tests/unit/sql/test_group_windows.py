"""TUMBLE, HOP, SESSION and what Spark calls them: what the words mean, and which of them are refused."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import midstream as ms

TEN = "INTERVAL '10' SECONDS"
FIVE = "INTERVAL '5' SECONDS"
BEGIN = datetime(2026, 1, 1)
MICRO = timedelta(microseconds=1)


def engine() -> ms.Engine:
    """An engine with two streams of equal columns."""
    made = ms.Engine()
    for name in "AB":
        made.create_stream(name, pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))]), timestamp="ts")
    return made


def asked(sql: str) -> list[dict[str, Any]]:
    """The answer over rows at 1, 9.999999, 10, 19 and 30 seconds; the last one is in no window that has ended."""
    made = engine()
    made.add_query("q", sql)
    times = [BEGIN + timedelta(seconds=s) for s in (1, 9.999999, 10, 19, 30)]
    rows: list[dict[str, Any]] = made.push({"A": pa.table({"k": [1, 1, 2, 1, 1], "ts": times})})["q"].to_pylist()
    return rows


def at(seconds: int) -> datetime:
    """A moment of the rows' minute."""
    return BEGIN + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("start", "end", "call"),
    [
        ("window_start", "window_end", f"TUMBLE(ts, {TEN})"),
        (f"TUMBLE_START(ts, {TEN})", f"TUMBLE_END(ts, {TEN})", f"TUMBLE(ts, {TEN})"),
        ("window.start", "window.end", "window(ts, '10 seconds')"),
        (f"HOP_START(A.ts, {TEN}, {TEN})", "window_end", f"HOP(A.ts, {TEN}, {TEN})"),
    ],
)
def test_a_row_at_the_end_is_in_the_next_window(start: str, end: str, call: str) -> None:
    found = asked(f"SELECT {start}, {end}, COUNT(*) AS n, _ts FROM A GROUP BY {call}")
    last = timedelta(microseconds=1)
    assert found == [
        {"window_start": at(0), "window_end": at(10), "n": 2, "_ts": at(10) - last},
        {"window_start": at(10), "window_end": at(20), "n": 2, "_ts": at(20) - last},
    ]


@pytest.mark.parametrize("call", [f"HOP(ts, {FIVE}, {TEN})", "window(ts, '10 seconds', '5 seconds')"])
def test_a_hopping_window_begins_at_each_slide(call: str) -> None:
    found = asked(f"SELECT window_start AS w, COUNT(*) AS n FROM A GROUP BY {call} HAVING COUNT(*) > 0")
    assert [(row["w"], row["n"]) for row in found] == [(at(-5), 1), (at(0), 2), (at(5), 2), (at(10), 2), (at(15), 1)]


@pytest.mark.parametrize(
    ("start", "end", "call"),
    [
        ("window_start", "window_end", f"SESSION(ts, {FIVE})"),
        (f"SESSION_START(ts, {FIVE})", f"SESSION_END(ts, {FIVE})", f"SESSION(ts, {FIVE})"),
        ("session_window.start", "session_window.end", "session_window(A.ts, '5 seconds')"),
    ],
)
def test_a_session_lasts_until_the_gap_after_its_last_row(start: str, end: str, call: str) -> None:
    found = asked(f"SELECT {start}, {end}, COUNT(*) AS n, _ts FROM A GROUP BY {call}")
    assert found == [
        {"window_start": at(1), "window_end": at(6), "n": 1, "_ts": at(6)},
        {"window_start": at(10) - MICRO, "window_end": at(15), "n": 2, "_ts": at(15)},
        {"window_start": at(19), "window_end": at(24), "n": 1, "_ts": at(24)},
    ]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (f"SELECT COUNT(*) FROM A EXCEPT ON (k) B GROUP BY TUMBLE(A.ts, {TEN})", "not the rows of a join or of EXCEPT"),
        (
            f"SELECT COUNT(*) FROM A GROUP BY TUMBLE(ts, {TEN}) EVERY 3 SECONDS",
            "EVERY cannot be in a query with TUMBLE",
        ),
        (f"SELECT COUNT(*) FROM A [RANGE 3 SECONDS] GROUP BY TUMBLE(ts, {TEN})", "a stream that has a window"),
        (f"SELECT COUNT(*) FROM A GROUP BY TUMBLE(ts, {TEN}), HOP(ts, {FIVE}, {TEN})", "only one window"),
        (f"SELECT COUNT(*) FROM A GROUP BY TUMBLE(k, {TEN})", "needs an event time"),
        (f"SELECT COUNT(*) FROM A GROUP BY HOP(ts, {TEN})", "HOP.* does not take 2 arguments"),
        ("SELECT COUNT(*) FROM A GROUP BY window(ts, '0 seconds')", "a window must have a length"),
        ("SELECT COUNT(*) FROM A GROUP BY window(ts, '1 month')", "unknown unit 'month'"),
        (f"SELECT TUMBLE(ts, {TEN}) FROM A", "TUMBLE must be in GROUP BY"),
        (
            f"SELECT TUMBLE_END(ts, {FIVE}) FROM A GROUP BY TUMBLE(ts, {TEN})",
            "TUMBLE_END must name the window of GROUP BY",
        ),
        (f"SELECT COUNT(*) FROM A GROUP BY SESSION(ts, {TEN}, {FIVE})", "SESSION.* does not take 3 arguments"),
        ("SELECT COUNT(*) FROM A GROUP BY session_window(ts, k)", "write INTERVAL"),
        (f"SELECT SESSION(ts, {TEN}) FROM A GROUP BY SESSION(ts, {TEN})", "SESSION must be in GROUP BY"),
        (
            f"SELECT SESSION_END(ts, {FIVE}) FROM A GROUP BY SESSION(ts, {TEN})",
            "SESSION_END must name the window of GROUP BY",
        ),
        (
            f"SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE A, DESCRIPTOR(ts), {TEN})), B WHERE A.k = B.k "
            "GROUP BY window_start, window_end",
            "not of a join",
        ),
        (
            f"SELECT COUNT(*) FROM A GROUP BY SESSION(ts, {TEN}) EVERY 3 SECONDS",
            "EVERY cannot be in a query with SESSION",
        ),
        (
            f"SELECT k, COUNT(*) FROM TABLE(SESSION(TABLE A, DESCRIPTOR(ts), {TEN})) "
            "GROUP BY k, window_start, window_end",
            "PARTITION BY and GROUP BY must name the same",
        ),
        (
            f"SELECT k FROM A QUALIFY ROW_NUMBER() OVER (PARTITION BY SESSION(ts, {TEN}) ORDER BY k) = 1",
            "ROW_NUMBER cannot rank within sessions",
        ),
        (f"SELECT window(ts, '1 s') FROM A GROUP BY TUMBLE(ts, {TEN})", r"window\(...\) must be in GROUP BY"),
    ],
)
def test_what_cannot_be_meant_is_refused(sql: str, message: str) -> None:
    with pytest.raises(ms.MidstreamError, match=message) as raised:
        engine().add_query("q", sql)
    assert "line 1, column" in str(raised.value)
    assert "Remedy" in str(raised.value)
