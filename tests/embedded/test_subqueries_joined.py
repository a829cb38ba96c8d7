"""Subqueries as sides of outer, semi and anti joins give what DuckDB has for the same text over the whole input.

What a subquery computes is computed of its rows alone: where an outer join pads with NULL, its columns are NULL, also
those that are never NULL of a row (a constant, COALESCE); and what it filters out is not there to be matched or padded.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from midstream import Engine

W = "[RANGE 20 SECONDS]"
ONE = "(SELECT k, 1 AS one, COALESCE(v, 0) AS c FROM B)"
TEXTS = {
    "a constant is padded": f"SELECT A.k, x.one, x.c FROM A {W} LEFT JOIN {ONE} AS x {W} ON A.k = x.k",
    "IS NULL sees padding": f"SELECT A.k FROM A {W} LEFT JOIN {ONE} AS x {W} ON A.k = x.k WHERE x.c IS NULL",
    "filtered on the right": f"SELECT A.k, x.s FROM A {W} "
    f"LEFT JOIN (SELECT * FROM B WHERE v > 0) AS x {W} ON A.k = x.k",
    "filtered on the left": f"SELECT x.k, B.v FROM (SELECT * FROM A WHERE v > 0) AS x {W} LEFT JOIN B {W} ON x.k = B.k",
    "both sides": f"SELECT x.two, x.k AS i, y.one, y.k AS j FROM (SELECT k, 2 AS two FROM A) AS x {W} "
    f"FULL JOIN (SELECT k, 1 AS one FROM B WHERE k <> 2) AS y {W} ON x.k = y.k",
    "what would fail is filtered": f"SELECT A.k, x.n FROM A {W} "
    f"LEFT JOIN (SELECT k, CAST(s AS INT) AS n FROM B WHERE s <> 'x') AS x {W} ON A.k = x.k",
    "anti": f"SELECT A.k FROM A {W} WHERE NOT EXISTS (SELECT 1 FROM {ONE} AS x {W} WHERE x.k = A.k AND x.c >= 0)",
    "not in": f"SELECT A.k FROM A {W} WHERE A.k NOT IN (SELECT j FROM (SELECT k + 1 AS j FROM B WHERE v > 0) AS x {W})",
}


def rows(*values: tuple[int, int, int | None, str]) -> pa.Table:
    ts, k, v, s = zip(*values, strict=True)
    times = pa.array([t * 1_000_000 for t in ts], pa.timestamp("us"))
    return pa.table({"ts": times, "k": pa.array(k, pa.int64()), "v": pa.array(v, pa.int64()), "s": list(s)})


A = rows((1, 1, 5, "1"), (2, 2, -1, "x"), (3, 3, 7, "3"), (4, 1, None, "9"))
B = rows((1, 1, 5, "1"), (2, 2, None, "x"), (900, 9, 7, "3"))
LAST = rows((3000, 99, 1, "1"))
"""Of each stream: so late that no row before it can find a partner any more."""


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("cut", [0, 1, 3])
def test_a_side_of_a_join_is_what_its_subquery_selects(text: str, cut: int) -> None:
    engine = Engine()
    for name, table in (("A", A), ("B", B)):
        engine.create_stream(name, table.schema, timestamp="ts")
    engine.add_query("q", text)
    got: Counter[Any] = Counter()
    for step in ({"A": A[:cut], "B": B[:cut]}, {"A": A[cut:], "B": B[cut:]}, {"A": LAST, "B": LAST}):
        for row in engine.push(step)["q"].to_pylist():
            got[tuple(value for name, value in row.items() if name != "_ts")] += 1
    got = Counter({row: n for row, n in got.items() if 99 not in row})
    assert got == expected(text)
    assert not engine.dead_letters


def expected(text: str) -> Counter[Any]:
    """The answer of DuckDB to the text without its windows: all rows that match are within them."""
    with duckdb.connect() as database:
        database.register("A", A)
        database.register("B", B)
        return Counter(database.execute(re.sub(r"\[[^]]*]", "", text)).fetchall())
