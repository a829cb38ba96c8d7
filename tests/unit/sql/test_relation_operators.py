"""ISTREAM, DSTREAM and RSTREAM: how they are written, what they mean, and where they mean nothing."""

from __future__ import annotations

from datetime import datetime, timedelta

import pyarrow as pa
import pytest

import midstream as ms

SECOND = 1_000_000
JOIN = "FROM A, B WHERE A.k = B.k WINDOW 10 SECONDS"


def engine() -> ms.Engine:
    found = ms.Engine()
    for name in "AB":
        found.create_stream(name, "k BIGINT, ts TIMESTAMP", timestamp="ts")
    found.table("names", pa.table({"k": pa.array([1], pa.int64()), "name": ["one"]}))
    return found


def plain(value: object) -> object:
    """A value, of a time its seconds since 1970."""
    return round((value - datetime(1970, 1, 1)) / timedelta(seconds=1), 6) if isinstance(value, datetime) else value


def answers(sql: str) -> list[list[tuple[object, ...]]]:
    """What a query answers in three steps, of rows of one key at these seconds."""
    asked = engine()
    asked.add_query("q", sql)
    steps = [{"A": (1, 2), "B": (3,)}, {"A": (13,), "B": (12,)}, {"A": (30,), "B": (30,)}]
    found = []
    for step in steps:
        rows = {
            name: pa.table({"k": [1] * len(at), "ts": pa.array([one * SECOND for one in at], pa.timestamp("us"))})
            for name, at in step.items()
        }
        found.append([tuple(map(plain, row.values())) for row in asked.push(rows)["q"].to_pylist()])
    return found


@pytest.mark.parametrize("word", ["ISTREAM", "DSTREAM", "RSTREAM"])
def test_it_stands_around_the_select_or_its_list(word: str) -> None:
    """A semicolon, names for columns and small letters change nothing; ISTREAM is what is answered anyway."""
    every = " EVERY 5 SECONDS" if word == "RSTREAM" else ""
    around = answers(f"{word}(SELECT A.k AS one, B.k {JOIN}{every});")
    within = answers(f"SELECT {word.lower()}(A.k AS one, B.k) {JOIN}{every}")
    assert around == within and any(around)
    assert (around == answers(f"SELECT A.k AS one, B.k {JOIN}")) == (word == "ISTREAM")


def test_a_result_leaves_in_the_microsecond_after_its_last() -> None:
    found = answers(f"DSTREAM(SELECT _ts AS t {JOIN})")
    assert found == [
        [],
        [(11.000001,)],
        [(12.000001,), (12.000001,), (13.000001,), (22.000001,)],
    ]


def test_the_relation_at_instants() -> None:
    found = answers("RSTREAM(SELECT _ts AS t, ts AS s FROM A [ROWS 1] EVERY 5 SECONDS)")
    assert found == [[], [(5, 2), (10, 2)], [(15, 13), (20, 13), (25, 13)]]
    grouped = "SELECT k, COUNT(*) AS n FROM A [RANGE 4 SECONDS] GROUP BY k EVERY 2 SECONDS"
    assert answers(f"RSTREAM({grouped})") == answers(grouped)


def test_what_leaves_may_be_read_by_another_query() -> None:
    left = "SELECT x.k FROM (SELECT DSTREAM(k) FROM A [RANGE 3 SECONDS]) AS x, B WHERE x.k = B.k WINDOW 5 SECONDS"
    assert answers(left) == [[], [(1,), (1,)], [(1,)]]


def test_rows_of_static_tables_are_looked_up_before() -> None:
    looked_up = "DSTREAM(SELECT name FROM A [RANGE 3 SECONDS], names WHERE A.k = names.k)"
    assert answers(looked_up) == [[], [("one",), ("one",)], [("one",)]]


REFUSED = {
    "ISTREAM(SELECT k FROM A)": r"ISTREAM needs a window on each stream, and 'A'.*column 1\).*leave",
    "DSTREAM(SELECT k FROM A)": "DSTREAM needs a window on each stream",
    "SELECT RSTREAM(k) FROM A EVERY 2 SECONDS": "stream 'A' has no window.*RANGE",
    "DSTREAM(SELECT A.k FROM A, B WHERE A.k = B.k)": "stream 'A' has no window.*RANGE",
    "RSTREAM(SELECT k FROM A [ROWS 3])": "RSTREAM needs EVERY.*EVERY 10 SECONDS",
    "DSTREAM(SELECT A.k FROM A LEFT JOIN B ON A.k = B.k WINDOW 3 SECONDS)": "DSTREAM cannot be over an outer",
    "SELECT RSTREAM(A.k) FROM A SEMI JOIN B ON A.k = B.k WINDOW 3 SECONDS EVERY 1 SECOND": "RSTREAM cannot be over",
    "DSTREAM(SELECT k FROM A [RANGE 3 SECONDS] WHERE EXISTS (SELECT 1 FROM B [RANGE 3 SECONDS] WHERE A.k = B.k))": (
        "DSTREAM cannot be over an outer, semi or anti join"
    ),
    "ISTREAM(SELECT k FROM A [RANGE 3 SECONDS] EXCEPT ON (k) B [RANGE 3 SECONDS])": "cannot be over EXCEPT.*by _op",
    "ISTREAM(SELECT k, COUNT(*) AS n FROM A [ROWS 3] GROUP BY k EVERY 2 SECONDS)": "over an aggregate.*RSTREAM",
    "DSTREAM(SELECT SUM(k) OVER (ORDER BY ts) AS n FROM A [ROWS 3])": "DSTREAM cannot be over an aggregate",
    "DSTREAM(SELECT k FROM A [ROWS 3] EVERY 4 SECONDS)": "cannot have EVERY.*leave EVERY out",
    "DSTREAM(SELECT k FROM A [ROWS 3] UNION ALL SELECT k FROM B [ROWS 3])": "DSTREAM must be around a single SELECT",
    "DSTREAM(SELECT DSTREAM(k) FROM A [ROWS 3])": "cannot have a second relation operator",
    "SELECT DSTREAM(k), ts FROM A [ROWS 3]": "DSTREAM around a part of the select list.*around all",
    "SELECT DSTREAM(k) AS a FROM A [ROWS 3]": "DSTREAM around a part of the select list",
    "DSTREAM(SELECT k FROM A [ROWS 3]": r"DSTREAM\( does not end here",
    "SELECT DSTREAM() FROM A [ROWS 3]": "selects nothing",
    "SELECT k FROM A [ROWS 3] WHERE DSTREAM(k) > 1": "unknown function 'DSTREAM'",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_where_it_means_nothing_it_is_refused(sql: str) -> None:
    with pytest.raises(ms.LanguageError, match=REFUSED[sql]) as error:
        engine().add_query("q", sql)
    assert "line 1, column" in error.value.place and error.value.remedy
