"""What an integer timestamp counts is said with its stream, and never guessed."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import midstream as ms
from midstream.pipeline.reconcile import with_streams

PAIRS = "SELECT A.k, A.ts AS at, _ts FROM A, B WHERE A.k = B.k WINDOW 20 SECONDS"


def engine(unit: str | None, **options: Any) -> ms.Engine:
    made = ms.Engine(**options)
    for name in ("A", "B"):
        made.create_stream(name, "k BIGINT, ts BIGINT", timestamp="ts", unit=unit)
    return made


def rows(*times: int) -> dict[str, pa.Table]:
    given = pa.table({"k": [1] * len(times), "ts": pa.array(times, pa.int64())})
    return {"A": given, "B": given}


@pytest.mark.parametrize(("unit", "second"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_windows_are_of_the_time_that_is_meant(unit: str, second: int) -> None:
    made = engine(unit)
    made.add_query("q", PAIRS)
    found = made.push(rows(0, 20 * second, 41 * second))["q"].to_pylist()
    assert {(row["at"] // second, row["_ts"]) for row in found} == {
        (at, datetime(1970, 1, 1) + timedelta(seconds=newest)) for at, newest in ((0, 0), (0, 20), (20, 20), (41, 41))
    }


def test_nanoseconds_are_cut_off_downwards() -> None:
    made = engine("ns")
    made.add_query("q", "SELECT _ts FROM A")
    assert made.push({"A": rows(-1)["A"]})["q"].to_pylist() == [{"_ts": datetime(1969, 12, 31, 23, 59, 59, 999_999)}]


def test_what_is_beyond_all_event_times_is_a_dead_letter() -> None:
    made = engine("s")
    made.push({"A": rows(2**62, 5, -(2**63))["A"]})
    dead = made.dead_letters["A"].to_pylist()
    assert [row["ts"] for row in dead] == [2**62, -(2**63)]
    assert dead[0]["_reason"] == f"timestamp column 'ts': {2**62} s are beyond all event times"


@pytest.mark.parametrize(
    "group", ["SESSION(ts, INTERVAL '10' SECONDS)", "TUMBLE(ts, INTERVAL '10' SECONDS)"], ids=["session", "tumble"]
)
def test_windows_do_not_wrap_around(group: str) -> None:
    """TIMESTAMP 'infinity' of DuckDB is 2^63 - 1, to which nothing can be added."""
    made = ms.Engine()
    made.create_stream("A", "ts TIMESTAMP", timestamp="ts")
    made.add_query("q", f"SELECT COUNT(*) AS n, window_end FROM A GROUP BY {group}")

    def push(*times: int) -> list[tuple[int, int]]:
        found = made.push({"A": pa.table({"ts": pa.array(times, pa.timestamp("us"))})})["q"]
        return list(zip(found["n"].to_pylist(), found["window_end"].cast(pa.int64()).to_pylist(), strict=True))

    assert [push(-(2**63)), push(0, 2**63 - 1), push(2**62), push(2**62 - 1)] == [[], [], [], [(1, 10_000_000)]]
    assert made.dead_letters["A"].num_rows == 3


@pytest.mark.parametrize("unit", [None, "minutes", ""])
def test_an_integer_timestamp_needs_its_unit(unit: str | None) -> None:
    with pytest.raises(ms.MidstreamError, match=r"has no unit|cannot have the unit") as caught:
        engine(unit)
    assert "ms" in str(caught.value)


def test_a_time_needs_none() -> None:
    with pytest.raises(ms.MidstreamError, match="leave the unit out"):
        ms.Engine().create_stream("A", "k BIGINT, ts TIMESTAMP", timestamp="ts", unit="ms")


@pytest.mark.parametrize("kind", ["TIMESTAMP", "DATE"])
def test_integers_where_a_time_is_declared_are_not_guessed_at(kind: str) -> None:
    made = ms.Engine()
    made.create_stream("A", f"k BIGINT, ts {kind}", timestamp="ts")
    made.add_query("q", "SELECT k FROM A")
    given = pa.table({"k": [1, 2], "ts": pa.array([1_700_000_000_000, None], pa.int64())})
    assert made.push({"A": given})["q"].num_rows == 0
    reasons = [row["_reason"] for row in made.dead_letters["A"].to_pylist()]
    assert "is an integer" in reasons[0] and "BIGINT with a unit" in reasons[0]
    assert reasons[1] == "timestamp column 'ts' is NULL"


def test_a_checkpoint_keeps_the_unit(tmp_path: Path) -> None:
    made = engine("ms", checkpoint=tmp_path / "ckpt")
    made.add_query("q", PAIRS)
    made.push(rows(1_000))
    made.close()
    again = engine("ms", checkpoint=tmp_path / "ckpt")
    assert again.push(rows(3_000))["q"].num_rows == 3
    again.close()
    with pytest.raises(ms.MidstreamError, match="cannot change the unit of its timestamps from ms to s"):
        engine("s", checkpoint=tmp_path / "ckpt")


def test_a_checkpoint_of_before_has_microseconds() -> None:
    made = engine("us")
    kept = {name: replace(schema, unit=None) for name, schema in made.manifest.streams.items()}
    before = replace(made.manifest, streams=kept)
    assert with_streams(before, made.manifest.streams, "here").streams == made.manifest.streams
    with pytest.raises(ms.MidstreamError, match="cannot change the unit of its timestamps from us to ms"):
        with_streams(before, engine("ms").manifest.streams, "here")
