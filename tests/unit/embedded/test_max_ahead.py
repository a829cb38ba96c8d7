"""A row whose clock is far ahead is a dead letter where a stream has `max_ahead`, and makes no right row late."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import midstream as ms

YEARS = 50 * 365 * 86_400
PAIRS = "SELECT A.k, _ts FROM A, B WHERE A.k = B.k WINDOW 0 SECONDS"


def rows(*seconds: int) -> pa.Table:
    return pa.table({"k": [1] * len(seconds), "ts": pa.array([s * 10**6 for s in seconds], pa.timestamp("us"))})


def engine(max_ahead: str | None, idle: str | None = None, **others: object) -> ms.Engine:
    made = ms.Engine(**others)  # type: ignore[arg-type]
    for stream in "AB":
        made.create_stream(
            stream, "k BIGINT, ts TIMESTAMP", "ts", lateness="5 seconds", idle_timeout=idle, max_ahead=max_ahead
        )
    made.add_query("q", PAIRS)
    return made


@pytest.mark.parametrize("idle", [None, "1 minute"])
def test_a_row_far_ahead_makes_no_other_late(idle: str | None) -> None:
    made = engine("1 day", idle)
    made.push({"A": rows(0), "B": rows(0)})
    made.push({"A": rows(YEARS)})
    made.push({"A": rows(1, YEARS, 2, YEARS + 1), "B": rows(1)})
    found = sum(made.push({"A": rows(i), "B": rows(i)})["q"].num_rows for i in range(3, 101))
    assert found == 98
    assert not made.late
    letters = made.dead_letters["A"].to_pylist()
    reason = "timestamp column 'ts': ahead by 18,250 days of all rows before it, and max_ahead is 1 d"
    assert [row["ts"].year for row in letters] == [2019] * 3
    assert {row["_reason"] for row in letters} == {reason}


def test_so_far_ahead_a_row_may_be() -> None:
    made = engine("10 seconds")
    made.push({"A": rows(0)})
    made.push({"A": rows(10, 11), "B": rows(10)})
    assert made.manifest.progress["A"].rejected == 1
    made.push({"B": rows(20)})
    assert made.manifest.progress["B"].rejected == 0, "the rows of all streams count"


def test_a_step_that_is_done_again_gives_the_same(tmp_path: Path) -> None:
    with engine("1 day", checkpoint=tmp_path / "ckpt") as made:
        made.push({"A": rows(0), "B": rows(0)})
    with engine("1 day", checkpoint=tmp_path / "ckpt") as made:
        made.push({"A": rows(YEARS), "B": rows(1)})
        assert made.manifest.progress["A"].rejected == 1
        assert made.dead_letters["A"].num_rows == 1
    with engine("30000 days", checkpoint=tmp_path / "ckpt") as made:
        made.push({"A": rows(YEARS)})
        assert made.manifest.progress["A"].rows == 2, "another one is taken where it is declared"


def test_zero_is_no_such_length() -> None:
    with pytest.raises(ms.InputError, match="max_ahead must be more than zero"):
        engine("0 seconds")


def test_the_stream_that_others_wait_for_is_named() -> None:
    made = engine(None)
    made.push({"A": rows(100)})
    assert "waits for stream B: it never brought a row" in made.explain("q")
    assert made.report().streams["B"].holds_back == ("q",)
    made.push({"B": rows(10)})
    made.push({"A": rows(130)})
    assert "waits for stream B: 2 min behind, no row since event time 1970-01-01 00:01:40" in made.explain("q")
    assert made.report().streams["A"].holds_back == ()
    made.push({"B": rows(130)})
    assert "waits for" not in made.explain("q")


def test_times_that_are_hardly_meant_are_said_once(caplog: pytest.LogCaptureFixture) -> None:
    made = ms.Engine()
    made.create_stream("A", "ts BIGINT", "ts", unit="s")
    made.add_query("q", "SELECT ts FROM A")
    made.push({"A": pa.table({"ts": [1_700_000_000_000]})})
    made.push({"A": pa.table({"ts": [1_700_000_000_001]})})
    (doubt,) = [event for event in made.events if isinstance(event, ms.events.TimesDoubtful)]
    assert "outside of 1970 to 2100; is its unit right?" in doubt.reason
    assert "times_doubtful" in caplog.text


def test_a_watermark_that_jumps_is_said_where_nothing_bounds_it() -> None:
    for bound, told in ((None, ["A"]), ("1 day", [])):
        made = engine(bound)
        made.push({"A": rows(0), "B": rows(0)})
        made.push({"A": rows(YEARS), "B": rows(3_600)})
        doubts = [event for event in made.events if isinstance(event, ms.events.TimesDoubtful)]
        assert [doubt.stream for doubt in doubts] == told
        assert all("ahead in one step" in doubt.reason for doubt in doubts)


def test_steps_that_each_go_further_than_any_window_are_reported_once_and_at_each_tenfold() -> None:
    made = engine(None)
    for day in (0, 2, 4, 6, 8, 30, 52):
        made.push({"A": rows(day * 86_400), "B": rows(day * 86_400)})
    doubts = [event for event in made.events if isinstance(event, ms.events.TimesDoubtful)]
    assert [(doubt.stream, doubt.step) for doubt in doubts] == [("A", 1), ("B", 1), ("A", 5), ("B", 5)]
