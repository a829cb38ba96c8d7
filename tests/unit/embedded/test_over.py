"""Calls OVER the rows near to each row: when a row is answered, and what is kept for it."""

from __future__ import annotations

import pyarrow as pa

import midstream as ms

SECOND = 1_000_000
BY = "OVER (PARTITION BY k ORDER BY ts"


def engine(*queries: str, lateness: str = "2 seconds") -> ms.Engine:
    made = ms.Engine()
    made.create_stream("A", "k BIGINT, v BIGINT, ts TIMESTAMP", timestamp="ts", lateness=lateness)
    for number, query in enumerate(queries):
        made.add_query(f"q{number}", query)
    return made


def pushed(one: ms.Engine, *rows: tuple[int, int, float]) -> list[list[tuple[object, ...]]]:
    """What each query answers of rows of k, v and seconds."""
    ks, vs, seconds = zip(*rows, strict=True)
    times = pa.array([int(second * SECOND) for second in seconds], pa.timestamp("us"))
    found = one.push({"A": pa.table({"k": ks, "v": vs, "ts": times})})
    return [[tuple(row.values()) for row in table.to_pylist()] for table in found.values()]


def test_a_row_is_answered_once_the_watermark_has_passed_it() -> None:
    one = engine(f"SELECT v, MAX(v) {BY} RANGE INTERVAL 5 SECONDS PRECEDING) AS m, _ts = ts AS own FROM A")
    assert pushed(one, (1, 1, 10), (1, 2, 11)) == [[]]
    assert pushed(one, (1, 9, 9), (1, 3, 13)) == [[(9, 9, True), (1, 9, True)]]
    assert pushed(one, (1, 4, 20)) == [[(2, 9, True), (3, 9, True)]]


def test_a_lead_is_answered_once_its_row_is_known_or_can_no_longer_come() -> None:
    one = engine(f"SELECT v, LEAD(v) {BY}) AS n FROM A [RANGE 10 SECONDS]", lateness="0 seconds")
    assert pushed(one, (1, 1, 0), (1, 2, 3), (2, 5, 3), (1, 3, 4)) == [[(1, 2)]]
    assert pushed(one, (3, 0, 10)) == [[(2, 3)]]
    assert pushed(one, (3, 7, 13)) == [[]]
    assert pushed(one, (3, 8, 14)) == [[(5, None), (0, 7)]]


def test_rows_of_one_time_are_in_the_order_of_further_keys_then_of_what_is_selected() -> None:
    by = ("ts", "ts, v DESC")
    texts = [f"SELECT v, LAG(v) OVER (ORDER BY {keys}) AS l FROM A [RANGE 10 SECONDS]" for keys in by]
    one = engine(*texts, lateness="0 seconds")
    pushed(one, (1, 3, 0), (1, 1, 0), (1, 2, 0))
    assert pushed(one, (1, 9, 9)) == [[(1, None), (2, 1), (3, 2)], [(3, None), (2, 3), (1, 2)]]


def test_what_is_kept_is_bounded() -> None:
    one = engine(
        f"SELECT SUM(v) {BY} RANGE BETWEEN INTERVAL 3 SECONDS PRECEDING AND INTERVAL 1 SECOND FOLLOWING) AS s FROM A",
        f"SELECT LAG(v) {BY}) AS l, LEAD(v) {BY}) AS n, SUM(v) {BY} ROWS 2 PRECEDING) AS r FROM A [RANGE 2 SECONDS]",
    )
    answered = 0
    for second in range(100):
        answered += sum(map(len, pushed(one, (second, 1, second))))
    assert answered > 180
    assert one.metrics()["state_rows"] < 40


def test_a_sum_that_is_too_great_is_a_dead_letter() -> None:
    one = ms.Engine()
    one.create_stream("A", "m DECIMAL(38, 0), ts TIMESTAMP", timestamp="ts")
    one.add_query("q", "SELECT SUM(m) OVER (ORDER BY ts RANGE INTERVAL 9 SECONDS PRECEDING) AS s FROM A")
    great = pa.array([10**37 * 9, 10**37 * 9, 1], pa.decimal128(38, 0))
    times = pa.array([0, SECOND, 60 * SECOND], pa.timestamp("us"))
    assert one.push({"A": pa.table({"m": great, "ts": times})})["q"].num_rows == 1
    assert one.dead_letters["q"].num_rows == 1
