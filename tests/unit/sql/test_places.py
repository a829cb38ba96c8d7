"""An error names the place in the text that the user wrote, though what is read there is a text made of it."""

from __future__ import annotations

import pytest

import midstream as ms
from midstream.sql.place import place

WINDOW = "TUMBLE(ts, INTERVAL '10' SECONDS)"
RANK = "ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY COUNT(*) DESC)"
COUNTED = f"SELECT k, COUNT(*) AS n, window_end FROM A GROUP BY k, {WINDOW}"

GROUPED = f"FROM A GROUP BY k, {WINDOW}"
FIRST = f"{GROUPED} QUALIFY r <= 1"

WRONG = {
    "an item beside a rank": f"SELECT k, §zz AS z, {RANK} AS r {FIRST}",
    "within an item beside a rank": f"SELECT k, {RANK} AS r, k +  §zz AS z {FIRST}",
    "an item of which a name is twice": f"SELECT k, {RANK} AS r, §k + k + v AS z {FIRST}",
    "what the rank orders by": "SELECT k, RANK() OVER (PARTITION BY window_end\nORDER BY n DESC,   §zz) AS r, "
    f"COUNT(*) AS n\n{GROUPED} QUALIFY r = 1",
    "what it orders by and is not grouped": "SELECT k, RANK() OVER (PARTITION BY window_end ORDER BY §v) AS r FROM A "
    f"GROUP BY k, {WINDOW} QUALIFY r = 1",
    "what it partitions by": f"SELECT k, RANK() OVER (PARTITION BY window_end, §zz) AS r {GROUPED} QUALIFY r = 1",
    "QUALIFY": f"SELECT k, {RANK} AS r {GROUPED} QUALIFY r <= 1 AND k > 2 AND §zz > 3",
    "WHERE behind a rank": f"SELECT k, {RANK} AS r FROM A\nWHERE v > §zz GROUP BY k, {WINDOW} QUALIFY r <= 1",
    "GROUP BY of a place": f"SELECT k, {RANK} AS r FROM A GROUP BY 1, §5, {WINDOW} QUALIFY r <= 1",
    "GROUP BY of a rank": f"SELECT k, {RANK} AS r FROM A GROUP BY 1, §2, {WINDOW} QUALIFY r <= 1",
    "GROUP BY behind a place": f"SELECT k + v, {RANK} AS r FROM A GROUP BY 1, §zz, {WINDOW} QUALIFY r <= 1",
    "a rank without a window": f"SELECT * FROM (SELECT k, §RANK() OVER (PARTITION BY k ORDER BY COUNT(*)) AS r "
    f"{GROUPED}) WHERE r <= 1",
    "in brackets": f"SELECT * FROM (SELECT k, {RANK} AS r,  §zz {GROUPED}) WHERE r <= 1",
    "around brackets": f"SELECT k, §zz FROM (SELECT k, {RANK} AS r {GROUPED}) WHERE r <= 1",
    "a subquery": f"SELECT x.k FROM B [NOW] JOIN\n(SELECT k,   MAX(§zz) {GROUPED}) x [NOW] ON x.k = B.k",
    "a subquery in a subquery": f"SELECT y.n FROM (SELECT MAX(x.n) AS n, MIN(§x.zz) AS m FROM  ({COUNTED}) AS x GROUP "
    "BY x.window_end) AS y",
    "the inner one": f"SELECT y.n FROM (SELECT MAX(x.n) AS n FROM  ({COUNTED.replace('n,', 'n,  §zz,')}) AS x GROUP BY "
    "x.window_end) AS y",
    "behind a subquery": f"SELECT x.k FROM ({COUNTED}) AS x [NOW], B [NOW] WHERE x.k = §B.zz",
    "behind two subqueries": f"SELECT x.k FROM ({COUNTED}) AS x [NOW], ({COUNTED}) AS y [NOW] WHERE x.k = §y.zz",
    "WITH": f"WITH x AS ({COUNTED}), y AS (SELECT MAX(§zz) AS m FROM x [NOW] EVERY 1 DAY) SELECT y.m FROM y",
    "what WITH names": "WITH x AS (SELECT k, ts FROM A WHERE §zz > 1), y AS (SELECT MAX(k) AS m FROM x [NOW] EVERY 1 "
    "DAY) SELECT m FROM y",
    "the second SELECT of UNION ALL": "SELECT k FROM A UNION ALL SELECT §zz FROM B",
    "the third SELECT of EXCEPT": "SELECT k, ts FROM A EXCEPT SELECT k, ts FROM B EXCEPT SELECT k + §zz, ts FROM B",
    "UNION in a subquery": "SELECT x.k FROM (SELECT k, ts FROM A UNION SELECT §zz, ts FROM B) AS x",
    "UNION beside another": "SELECT x.k FROM (SELECT k FROM A UNION ALL SELECT k FROM B §UNION SELECT k FROM B)",
    "top-n": "SELECT k, v FROM A [NOW] QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY §zz) <= 1 EVERY 1 DAY",
    "top-n around a subquery": "SELECT k, v + §zz FROM (SELECT k, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) "
    "AS r FROM A [NOW]) WHERE r <= 1 EVERY 1 DAY",
    "top-n in a subquery": "SELECT k FROM (SELECT k, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY §zz) AS r FROM A "
    "[NOW]) WHERE r <= 1 EVERY 1 DAY",
    "EXISTS": "SELECT k FROM A WHERE EXISTS (SELECT 1 FROM B WHERE B.k = A.k AND B.v = §B.zz) WINDOW 1 DAY",
    "NOT IN": "SELECT k FROM A WHERE k > 1 AND k NOT IN (SELECT §zz FROM B) WINDOW 1 DAY",
    "NOT IN, its left": "SELECT k FROM A WHERE §zz NOT IN (SELECT k FROM B) WINDOW 1 DAY",
    "a condition beside NOT IN": "SELECT k FROM A WHERE k NOT IN (SELECT k FROM B) AND v > §zz WINDOW 1 DAY",
    "an outer join": "SELECT A.k FROM A LEFT JOIN B ON A.k = B.k LEFT JOIN B AS C ON §C.zz = A.k WINDOW 1 DAY",
    "an outer join, first": "SELECT A.k FROM A LEFT JOIN B ON A.k = §B.zz LEFT JOIN B AS C ON C.k = A.k WINDOW 1 DAY",
    "a static table": "SELECT A.k FROM A JOIN rates AS r ON r.k = A.k WHERE §r.zz > 1",
    "a static table below an aggregate": f"SELECT r.rate, MAX(§zz) AS n FROM A JOIN rates AS r ON r.k = A.k GROUP BY "
    f"r.rate, {WINDOW}",
    "a static table's ON": "SELECT A.k FROM A JOIN B ON A.k = B.k JOIN rates AS r ON §r.zz = B.k WINDOW 20 SECONDS",
    "a subquery over a static table": "SELECT A.k FROM A JOIN (SELECT k, §zz FROM rates) AS r ON r.k = A.k",
    "DISTINCT": f"SELECT DISTINCT k, §zz, window_end FROM A GROUP BY {WINDOW}",
}


@pytest.mark.parametrize("name", WRONG)
def test_an_error_names_the_place_in_what_the_user_wrote(name: str) -> None:
    marked = WRONG[name]
    text = marked.replace("§", "")
    engine = ms.Engine()
    for stream in "AB":
        engine.create_stream(stream, "k BIGINT, v DOUBLE, s VARCHAR, ts TIMESTAMP", timestamp="ts")
    engine.table("rates", [{"k": 1, "rate": 0.5}])
    with pytest.raises(ms.LanguageError) as refused:
        engine.add_query("q", text)
    found = refused.value
    assert found.place == place(text, marked.index("§")), (found, text[marked.index("§") :])
