"""Which subqueries are parts, and that the text around them keeps its places."""

from __future__ import annotations

import pytest

from midstream.language.parts import parts_of

COUNTED = "SELECT k, COUNT(*) AS n FROM A GROUP BY k, TUMBLE(ts, '5 seconds')"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT k FROM A WHERE f(k) IN (1, 2)", []),
        ("SELECT x.k FROM (SELECT k FROM A WHERE v > (1)) AS x", []),
        (f"SELECT x.k FROM ({COUNTED}) AS x", ["x"]),
        (
            f"SELECT x.k FROM B JOIN ({COUNTED}) AS x ON x.k = B.k JOIN ({COUNTED} HAVING n > 1) y ON y.k = x.k",
            ["x", "y"],
        ),
        (f"SELECT k FROM B WHERE k IN (SELECT k FROM ({COUNTED}) x)", []),
        (f"WITH x AS ({COUNTED}) SELECT k FROM x", ["x"]),
        (f"SELECT k FROM A UNION ALL SELECT k FROM ({COUNTED}) x", ["x", "union", "union"]),
        ("SELECT k, ts FROM A INTERSECT SELECT k, ts FROM B", ["intersect", "intersect"]),
        ("SELECT k, ts FROM A EXCEPT DISTINCT SELECT k, ts FROM B", ["except", "except"]),
        ("SELECT k FROM (SELECT k, ts FROM A EXCEPT SELECT k, ts FROM B) AS x", ["x"]),
        ("SELECT k FROM A [NOW] EXCEPT ON (k) B [NOW]", []),
    ],
)
def test_parts(text: str, names: list[str]) -> None:
    found = parts_of(text)
    assert [name.rpartition("-")[0] for name in found.queries] == names
    assert found.together or len(found.text) == len(text)


def test_the_selects_of_a_set_operation_are_numbered_before_from() -> None:
    text = "SELECT k IS DISTINCT FROM v AS d, ts FROM A INTERSECT SELECT DISTINCT true, EXTRACT(EPOCH FROM ts) FROM B"
    assert list(parts_of(text).queries.values()) == [
        'SELECT k IS DISTINCT FROM v AS d, ts, 0 AS "number of the select" FROM A',
        'SELECT DISTINCT true, EXTRACT(EPOCH FROM ts), 1 AS "number of the select" FROM B',
    ]


def test_equal_texts_are_one_part_but_for_blanks_that_mean_nothing() -> None:
    one, other = (parts_of(f"SELECT k FROM ({text}) AS x").queries for text in (COUNTED, COUNTED.replace(" n", "  n")))
    assert one.keys() != other.keys(), "a text with quotes is kept as it is"
    plain = "SELECT k, SUM(v) AS n FROM A [NOW] GROUP BY k EVERY 5 SECONDS"
    one, other = (parts_of(f"SELECT k FROM ({text}) AS x").queries for text in (plain, plain.replace(" n", "\n  n")))
    assert one == other
    named = plain.replace("v", "`a  b`")
    assert "`a  b`" in next(iter(parts_of(f"SELECT k FROM ({named}) AS x").queries.values()))


def test_a_part_has_what_with_says_before_it_by_its_quoted_name() -> None:
    text = 'WITH "My X" AS (SELECT k FROM A), y AS (SELECT k FROM "My X" [NOW] GROUP BY k EVERY 1 DAY) SELECT k FROM y'
    (part,) = parts_of(text).queries.values()
    assert part.startswith('WITH "My X" AS (SELECT k FROM A) SELECT')
