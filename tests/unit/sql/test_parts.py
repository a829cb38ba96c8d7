"""Which subqueries are parts, and that the query around them keeps its places."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from sqlglot.parser import Parser

from midstream.sql.parts import Statement
from midstream.sql.sql_tree import sql_of
from tests.docs.test_language_table import EXAMPLE, TAKEN, engine

TEXTS = [found.strip() for found in EXAMPLE.findall(TAKEN)]
COUNTED = "SELECT k, COUNT(*) AS n FROM A GROUP BY k, TUMBLE(ts, '5 seconds')"


def parts(text: str) -> dict[str, str]:
    return {name: part.sql for name, part in Statement.of(text).parts.queries.items()}


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
        (f"SELECT k FROM ({COUNTED}) WHERE k > 1", ["part"]),
        (f"SELECT k FROM B WHERE k IN (SELECT k FROM ({COUNTED}) x)", ["x"]),
        (f"WITH x AS ({COUNTED}) SELECT k FROM x", ["x"]),
        (f"SELECT k FROM A UNION ALL SELECT k FROM ({COUNTED}) x", ["x", "union", "union"]),
        ("SELECT k, ts FROM A INTERSECT SELECT k, ts FROM B", ["intersect", "intersect"]),
        ("SELECT k, ts FROM A EXCEPT DISTINCT SELECT k, ts FROM B", ["except", "except"]),
        ("SELECT k FROM (SELECT k, ts FROM A EXCEPT SELECT k, ts FROM B) AS x", ["x"]),
        ("SELECT k FROM A [NOW] EXCEPT ON (k) B [NOW]", []),
    ],
)
def test_parts(text: str, names: list[str]) -> None:
    assert [name.rpartition("-")[0] for name in parts(text)] == names


def test_the_selects_of_a_set_operation_are_numbered_before_from() -> None:
    text = "SELECT k IS DISTINCT FROM v AS d, ts FROM A INTERSECT SELECT DISTINCT true, EXTRACT(EPOCH FROM ts) FROM B"
    assert list(parts(text).values()) == [
        'SELECT k IS DISTINCT FROM v AS d, ts, 0 AS "number of the select" FROM A',
        'SELECT DISTINCT TRUE, EXTRACT(EPOCH FROM ts), 1 AS "number of the select" FROM B',
    ]


def test_equal_parts_are_one_however_they_are_written() -> None:
    other = COUNTED.replace(" n", "\n  n").replace("COUNT(*)", "count( * ) /* all */")
    assert parts(f"SELECT k FROM ({COUNTED}) AS x") == parts(f"SELECT k FROM ({other}) AS x")
    assert len(parts(f"SELECT x.k FROM ({COUNTED}) AS x JOIN ({other}) AS y ON x.k = y.k")) == 1


def test_a_part_has_what_with_says_before_it_by_its_quoted_name() -> None:
    text = 'WITH "My X" AS (SELECT k FROM A), y AS (SELECT k FROM "My X" [NOW] GROUP BY k EVERY 1 DAY) SELECT k FROM y'
    (part,) = parts(text).values()
    assert part.startswith('WITH "My X" AS (SELECT k FROM A) SELECT')


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k FROM A AS a [RANGE 9 SECONDS], B AS b [ROWS 3] WHERE a.k = b.k WINDOW 1 DAY EVERY 1500 MILLISECONDS",
        'SELECT k FROM A [NOW] EXCEPT ON ("k", "v") "B" AS "b" [RANGE 1 DAY] WINDOW 5 SECONDS',
        "SELECT window_end FROM TABLE(SESSION(TABLE A PARTITION BY \"K\", DESCRIPTOR(ts), INTERVAL '5' SECONDS"
        ")) AS w GROUP BY window_end, k",
        "SELECT k, WINDOW(ts, '5 seconds'), DATEDIFF(a, b), INITCAP(s) FROM A GROUP BY k, SESSION(ts, '5 seconds')",
    ],
)
def test_the_text_for_people_says_what_the_tree_does(text: str) -> None:
    tree = Statement.of(text).tree
    assert sql_of(tree) == text


@pytest.mark.parametrize("text", TEXTS)
def test_a_query_is_parsed_once_and_nothing_made_of_it(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    parse = Parser.parse

    def noted(parser: Parser, tokens: list[Any], sql: str | None = None) -> Any:
        parsed.append(sql or "")
        return parse(parser, tokens, sql)

    one = engine()
    monkeypatch.setattr(Parser, "parse", noted)
    one.add_query("q", text)
    rows = pa.table({"k": [1], "v": [1.0], "s": ["1,2"], "ts": pa.array([0], pa.timestamp("us"))})
    one.push({"A": rows, "B": rows})
    assert parsed == [text]
