"""A bound query is written into the manifest, and read again it is the same query, however it was typed."""

from __future__ import annotations

import json

import pytest

from midstream.logical.query import Query
from midstream.model.codec import decode, encode
from midstream.model.manifest import BoundQuery
from tests.unit.sql.schemas import parsed

JOIN = "FROM A [RANGE 5 SECONDS] JOIN B [RANGE 5 SECONDS] ON A.k = B.k"
CONSTANTS = (
    "5", "2.50", "1e300", "'naïve'", "TRUE", "NULL", "CAST('ab' AS BLOB)", "12345678901234567890123",
    "CAST('inf' AS DOUBLE)",
    "CAST('nan' AS DOUBLE)", "-CAST(0 AS DOUBLE)", "DATE '2024-02-29'", "TIME '10:00:00.5'", "INTERVAL '90' MINUTES",
    "TIMESTAMP '2024-02-29 10:00:00.123456'", "TIMESTAMPTZ '2024-02-29 10:00:00+02'",
    "CAST('2024-02-29 10:00:00.123456789' AS TIMESTAMP_NS)", "CAST(NULL AS DECIMAL(9, 3))",
)  # fmt: skip
TEXTS = (
    *(f"SELECT {one} AS x FROM A" for one in CONSTANTS),
    "SELECT *, nested.x + 1 AS y FROM A WHERE code = 'a' AND nano > '2024-01-01' AND raw IS NOT NULL AND m < 2.5",
    f"SELECT A.k, B.s {JOIN} WHERE A.v BETWEEN B.v - 1 AND B.v + 2.5 AND A.i <> B.i",
    "SELECT A.k FROM A [ROWS 3], B [ROWS 9], C [ROWS 1] WHERE A.k = B.k AND A.v + B.v > C.v OR C.o",
    f"SELECT A.k, COUNT(*) AS n, MEDIAN(A.v) AS m {JOIN} GROUP BY A.k HAVING COUNT(*) > 1 EVERY 1 SECOND",
    "SELECT k, SUM(m) AS x FROM A GROUP BY k, SESSION(ts, INTERVAL '5' SECONDS)",
    "SELECT k, v FROM A [RANGE 9 SECONDS] QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) <= 3"
    " EVERY 1 SECOND",
    "SELECT k FROM A EXCEPT ON (k) B EXCEPT ON (k) C WINDOW 4 MINUTES",
    "SELECT A.k, B.s FROM A [RANGE 5 SECONDS] LEFT JOIN B [RANGE 5 SECONDS] ON A.k = B.k WHERE B.k IS NULL OR B.v > 1",
    "SELECT k FROM A [RANGE 5 SECONDS] WHERE NOT EXISTS (SELECT 1 FROM B [RANGE 5 SECONDS] WHERE B.k = A.k)",
    f"SELECT {' + '.join(['k'] * 200)} AS x FROM A",
    f"SELECT k FROM A WHERE {' OR '.join(f'k = {n} AND s = {n!r}' for n in map(str, range(300)))}",
)


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:60])
def test_a_query_is_read_as_it_was_written(text: str) -> None:
    query = parsed(text)
    again = decode(BoundQuery, json.loads(json.dumps(encode(query), allow_nan=False)))
    assert isinstance(again, Query)
    # By their texts too: expressions are told apart by them, and what is not a number equals not even itself.
    assert repr(again) == repr(query)
    assert [one.text() for one in again.expressions()] == [one.text() for one in query.expressions()]
    assert again.text == text


def test_a_query_is_encoded_once() -> None:
    query = parsed(f"SELECT A.k {JOIN}")
    assert encode(query) is encode(query)


@pytest.mark.parametrize(
    "nodes",
    [
        [], [["int64", 1], ["int64", 2]], [["int64", "add", 1]], [["int64", 1], ["int64", "add", -1]], [["nothing", 1]],
        [["A", "k", "bool"], *[["bool", "not", 1]] * 1000], [7], [["int64", {"elsewhere": 1}]],
    ],
)  # fmt: skip
def test_what_is_no_expression_is_refused(nodes: object) -> None:
    value = {**encode(parsed("SELECT k FROM A")), "selections": [["A", nodes]]}
    with pytest.raises((KeyError, TypeError, ValueError, AttributeError, IndexError)):
        decode(BoundQuery, value)
