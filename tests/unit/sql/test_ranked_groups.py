"""A rank in the SELECT that groups answers what it does around that SELECT in brackets."""

from __future__ import annotations

import pyarrow as pa
import pytest

import midstream as ms

SECOND = 1_000_000
TEN = "INTERVAL '10' SECONDS"
COUNTS = f"SELECT k, COUNT(*) AS n, SUM(v) AS s, window_start, window_end FROM A GROUP BY k, TUMBLE(ts, {TEN})"
GROUPS = f"GROUP BY k, TUMBLE(ts, {TEN})"
RANKED = "ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY n DESC, k) AS rn"
FIRST = f"SELECT * FROM (SELECT k, n, window_end, {RANKED} FROM ({COUNTS})) WHERE rn <= 1"


def answers(*texts: str) -> list[list[dict[str, object]]]:
    """What each of these queries answers of the same few rows."""
    engine = ms.Engine()
    engine.create_stream("A", "k BIGINT, v BIGINT, ts TIMESTAMP", timestamp="ts")
    for number, text in enumerate(texts):
        engine.add_query(f"q{number}", text)
    rows = [(1, 5, 1), (1, 6, 2), (2, 9, 3), (2, 1, 11), (3, 7, 12), (3, 7, 13), (4, 8, 14), (9, 0, 60)]
    ks, vs, seconds = zip(*rows, strict=True)
    times = pa.array([second * SECOND for second in seconds], pa.timestamp("us"))
    found = engine.push({"A": pa.table({"k": ks, "v": vs, "ts": times})})
    return [found[f"q{number}"].to_pylist() for number in range(len(texts))]


@pytest.mark.parametrize(
    ("together", "apart"),
    [
        pytest.param(
            "SELECT * FROM (SELECT k, COUNT(*) AS n, window_end, ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY "
            f"COUNT(*) DESC, k) AS rn FROM A GROUP BY k, TUMBLE(ts, {TEN})) WHERE rn <= 1",
            FIRST,
            id="flink",
        ),
        pytest.param(
            "SELECT * FROM (SELECT k, COUNT(*) AS n, window_end, ROW_NUMBER() OVER (PARTITION BY window_start, "
            f"window_end ORDER BY COUNT(*) DESC, k) AS rn FROM TABLE(TUMBLE(TABLE A, DESCRIPTOR(ts), {TEN})) GROUP BY "
            "window_start, window_end, k) WHERE rn <= 1",
            FIRST,
            id="flink's table, by a column that is not selected",
        ),
        pytest.param(
            f"WITH x AS (SELECT k, COUNT(*) AS n, window.end, {RANKED.replace('window_end', 'window.end')} FROM A "
            "GROUP BY k, window(ts, '10 seconds')) SELECT k, n, window_end, rn FROM x WHERE rn <= 1",
            FIRST,
            id="spark's window, in WITH",
        ),
        pytest.param(
            f"SELECT k, COUNT(*) AS n, TUMBLE_END(ts, {TEN}), {RANKED.replace('window_end', f'TUMBLE_END(ts, {TEN})')} "
            f"FROM A GROUP BY k, TUMBLE(ts, {TEN}) QUALIFY rn = 1",
            FIRST,
            id="qualify",
        ),
        pytest.param(
            f"SELECT k, _ts FROM A GROUP BY k, TUMBLE(ts, {TEN}) HAVING COUNT(*) > 1 QUALIFY RANK() OVER (PARTITION BY "
            "window_end ORDER BY SUM(v) % 4 + COUNT(*) DESC) <= 2 AND SUM(v) > 11 AND k IS NOT NULL",
            "SELECT k, _ts FROM (SELECT k, s, _ts, RANK() OVER (PARTITION BY window_end ORDER BY s % 4 + n DESC) AS rn "
            f"FROM ({COUNTS} HAVING n > 1)) WHERE rn <= 2 AND s > 11",
            id="by what is not selected, with further conditions",
        ),
        pytest.param(
            "SELECT k, COUNT(*) AS n, ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC, k DESC) AS rn FROM A [RANGE 20 "
            "SECONDS] GROUP BY k QUALIFY rn <= 2 EVERY 10 SECONDS",
            "SELECT k, n, ROW_NUMBER() OVER (PARTITION BY t ORDER BY n DESC, k DESC) AS rn FROM (SELECT k, COUNT(*) "
            "AS n, _ts AS t FROM A [RANGE 20 SECONDS] GROUP BY k EVERY 10 SECONDS) QUALIFY rn <= 2",
            id="every so often",
        ),
        pytest.param(
            f"SELECT k AS g, MAX(v) AS k, {RANKED.replace('n DESC, k', 'k')} FROM A GROUP BY k, TUMBLE(ts, {TEN}) "
            "QUALIFY rn <= 1",
            "SELECT g, k, ROW_NUMBER() OVER (PARTITION BY e ORDER BY g) AS rn FROM (SELECT k AS g, MAX(v) AS k, "
            f"window_end AS e FROM A GROUP BY k, TUMBLE(ts, {TEN})) QUALIFY rn <= 1",
            id="a group's column has the name of an item",
        ),
        pytest.param(
            "SELECT k, window.start AS x, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY x ORDER BY COUNT(*) DESC, k) "
            "AS "
            "rn FROM A GROUP BY k, window(ts, '10 seconds') QUALIFY rn <= 1",
            f"SELECT k, window_start AS x, n, {RANKED} FROM ({COUNTS}) QUALIFY rn <= 1",
            id="by the alias of a bound",
        ),
        pytest.param(
            "SELECT k, window.start AS x, window.start AS y, RANK() OVER (PARTITION BY y, x ORDER BY COUNT(*) DESC) "
            "AS rn "
            "FROM A GROUP BY k, window(ts, '10 seconds') QUALIFY rn <= 1",
            "SELECT k, window_start AS x, window_start AS y, RANK() OVER (PARTITION BY window_end ORDER BY n DESC) AS "
            "rn "
            f"FROM ({COUNTS}) QUALIFY rn <= 1",
            id="by two aliases of a bound",
        ),
        pytest.param(
            f"SELECT COUNT(*) AS n, k, {RANKED} FROM A GROUP BY 2, TUMBLE(ts, {TEN}) QUALIFY rn <= 1",
            f"SELECT n, k, {RANKED} FROM ({COUNTS}) QUALIFY rn <= 1",
            id="grouped by position",
        ),
        pytest.param(
            f"SELECT {RANKED}, window_end, k % 2 AS odd, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE A, DESCRIPTOR(ts), "
            f"{TEN})) "
            "GROUP BY 3, window_start, 2 QUALIFY rn <= 1".replace("n DESC, k", "n DESC, odd"),
            f"SELECT {RANKED}, window_end, odd, n FROM (SELECT k % 2 AS odd, COUNT(*) AS n, window_start, window_end "
            f"FROM A "
            f"GROUP BY k % 2, TUMBLE(ts, {TEN})) QUALIFY rn <= 1".replace("n DESC, k", "n DESC, odd"),
            id="grouped by positions behind the rank, an expression and a bound",
        ),
        pytest.param(
            "SELECT k IS DISTINCT FROM 3 AS d, COUNT(*) AS n, RANK() OVER (PARTITION BY window_end ORDER BY COUNT(*) "
            "DESC) AS "
            f"rn FROM A GROUP BY 1, TUMBLE(ts, {TEN}) QUALIFY rn <= 1",
            "SELECT d, n, RANK() OVER (PARTITION BY window_end ORDER BY n DESC) AS rn FROM (SELECT k IS DISTINCT FROM "
            "3 AS "
            f"d, COUNT(*) AS n, window_end FROM A GROUP BY d, TUMBLE(ts, {TEN})) QUALIFY rn <= 1",
            id="grouped by the position of what has FROM in it",
        ),
    ],
)
def test_a_rank_beside_the_groups_is_one_around_them(together: str, apart: str) -> None:
    found, expected = answers(together, apart)
    assert found == expected and found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"SELECT k, {RANKED} FROM A {GROUPS}", "ROW_NUMBER ... OVER is not part of the language"),
        (
            f"SELECT k FROM A {GROUPS.replace('k', '1')} QUALIFY RANK() OVER (ORDER BY k) = 1",
            "over answers of windows write PARTITION BY window_end",
        ),
        (f"SELECT k, {RANKED} FROM A {GROUPS.replace('k', '3')} QUALIFY rn = 1", "no column 3 in the select list"),
        (
            f"SELECT k, {RANKED} FROM A {GROUPS.replace('k', '2')} QUALIFY rn = 1",
            "column 2 of the select list is a rank",
        ),
        (
            f"SELECT k FROM A {GROUPS} QUALIFY RANK() OVER (ORDER BY k) = 1",
            "over answers of windows write PARTITION BY window_end",
        ),
        (
            f"SELECT k FROM A {GROUPS} QUALIFY RANK() OVER (PARTITION BY window_end ORDER BY v) = 1",
            "A.v is neither in GROUP BY nor",
        ),
        (f"SELECT k FROM A {GROUPS} QUALIFY RANK() OVER (PARTITION BY window_end) > 1", "only select the first n rows"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(ms.LanguageError) as refused:
        answers(text.replace("n DESC, k", "COUNT(*)"))
    assert message in str(refused.value)
