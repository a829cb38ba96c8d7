"""Texts of a grammar of queries are answered, or refused with a place and a remedy: none ends in a fault.

The grammar is wider than the language: types need not fit, functions get any arguments, clauses stand where they may
not. What is taken also runs, over rows of odd values, for much of what can go wrong goes wrong in a step.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.expr.functions import CATALOGUE
from tests.drawing import drawing
from tests.texts import NAMES, ends_well

pytestmark = [pytest.mark.property, pytest.mark.timeout(7200)]

TYPES = (
    "BIGINT",
    "TINYINT",
    "UBIGINT",
    "HUGEINT",
    "DOUBLE",
    "FLOAT",
    "DECIMAL(38, 10)",
    "DECIMAL(3, 3)",
    "VARCHAR",
    "BLOB",
    "DATE",
    "TIME",
    "TIMESTAMP",
    "TIMESTAMPTZ",
    "TIMESTAMP_NS",
    "TIMESTAMP_S",
    "INTERVAL",
    "BOOLEAN",
    "BIGINT[]",
    "STRUCT(x BIGINT)",
    "MAP(VARCHAR, BIGINT)",
    "UUID",
    "JSON",
    "NOPE",
)
LITERALS = (
    "NULL",
    "TRUE",
    "0",
    "1",
    "-1",
    "2.5",
    "1e300",
    "1e-400",
    "9223372036854775807",
    "170141183460469231731687303715884105727",
    "99999999999999999999999999999999999999999",
    "''",
    "'x'",
    "'2024-02-29'",
    "'%_'",
    "'(['",
    "'a''b'",
    "'\u00e9\U0001f600'",
    "DATE '2024-02-29'",
    "TIMESTAMP '2024-01-01 00:00:00'",
    "TIME '12:00:00'",
    "INTERVAL 1 DAY",
    "INTERVAL '2' MONTH",
    "x'00ff'",
    "[1, 2]",
    "{'x': 1}",
    "MAP {'a': 1}",
    "'day'",
    "'%Y'",
    "'$.a'",
    "1_000",
    "0x1F",
    "'infinity'",
    "'NaN'",
)
OPERATORS = (
    "+",
    "-",
    "*",
    "/",
    "%",
    "//",
    "**",
    "||",
    "=",
    "<>",
    "<",
    ">=",
    "AND",
    "OR",
    "&",
    "|",
    "<<",
    ">>",
    "^",
    "->",
    "->>",
    "~",
    "IS DISTINCT FROM",
    "<=>",
    "LIKE",
    "ILIKE",
    "SIMILAR TO",
    "GLOB",
    "^@",
    "COLLATE",
    "AT TIME ZONE",
    "IN",
    "DIV",
    "XOR",
)
MORE_FUNCTIONS = (
    "COUNT",
    "SUM",
    "AVG",
    "MIN",
    "MAX",
    "MEDIAN",
    "ARRAY_AGG",
    "STRING_AGG",
    "QUANTILE_CONT",
    "ARG_MAX",
    "BOOL_AND",
    "STDDEV",
    "APPROX_COUNT_DISTINCT",
    "FIRST",
    "LAST",
    "LAG",
    "ROW_NUMBER",
    "RANK",
    "TUMBLE",
    "HOP",
    "SESSION",
    "UNNEST",
    "DATEDIFF",
    "DATE_ADD",
    "DATE_SUB",
    "TIMESTAMPDIFF",
    "EXTRACT",
    "NVL",
    "IFNULL",
    "DECODE",
    "POSITION",
    "OVERLAY",
    "STRUCT_PACK",
    "NOW",
    "LIST_VALUE",
    "TO_TIMESTAMP",
    "EPOCH",
    "JSON_EXTRACT",
    "RANDOM",
    "NO_SUCH",
    "GROUPING",
    "CONCAT_WS",
    "FORMAT",
    "PRINTF",
)
FUNCTIONS = tuple(sorted({*map(str.upper, CATALOGUE), *MORE_FUNCTIONS}))
LENGTHS = ("1 SECOND", "'2 minutes'", "0 SECONDS", "INTERVAL 1 HOUR", "1 MONTH", "-1 SECONDS", "1e9 DAYS", "x")
WINDOWS = (
    "",
    "",
    " [RANGE 5 SECONDS]",
    " [ROWS 3]",
    " [NOW]",
    " [RANGE UNBOUNDED]",
    " [ROWS 0]",
    " [RANGE 1 DAY SLIDE 1 HOUR]",
)

FRAMES = (
    "RANGE BETWEEN INTERVAL 5 SECONDS PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING",
    "DESC",
)

columns = st.sampled_from(
    [*NAMES, *(f"A.{name}" for name in NAMES), *(f"B.{name}" for name in NAMES), "_ts", "nope", "C.k", "*"]
)


def joined(separator: str, parts: st.SearchStrategy[str], least: int, most: int) -> st.SearchStrategy[str]:
    return st.lists(parts, min_size=least, max_size=most).map(separator.join)


def made_of(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    some, kinds, of = joined(", ", inner, 0, 4), st.sampled_from(TYPES), st.sampled_from
    return st.one_of(
        st.tuples(inner, of(OPERATORS), inner).map(lambda x: f"({x[0]} {x[1]} {x[2]})"),
        st.tuples(inner, of(OPERATORS), inner).map(lambda x: f"{x[0]} {x[1]} {x[2]}"),
        st.tuples(of(FUNCTIONS), some).map(lambda x: f"{x[0]}({x[1]})"),
        st.tuples(of(FUNCTIONS), some).map(lambda x: f"{x[0]}({x[1]})"),
        st.tuples(of(FUNCTIONS), of(("", "DISTINCT ")), inner, inner).map(
            lambda x: f"{x[0]}({x[1]}{x[2]} ORDER BY {x[3]}) FILTER (WHERE {x[3]})"
        ),
        st.tuples(of(FUNCTIONS), inner, inner).map(lambda x: f"{x[0]}({x[1]}) OVER (PARTITION BY {x[2]} ORDER BY ts)"),
        st.tuples(of(FUNCTIONS), inner, of(NAMES), of(FRAMES)).map(
            lambda x: f"{x[0]}({x[1]}) OVER (PARTITION BY {x[2]} ORDER BY ts {x[3]})"
        ),
        st.tuples(of(("CAST", "TRY_CAST")), inner, kinds).map(lambda x: f"{x[0]}({x[1]} AS {x[2]})"),
        st.tuples(inner, kinds).map("::".join),
        st.tuples(of(("-", "+", "NOT ", "~")), inner).map("".join),
        st.tuples(inner, inner, inner).map(lambda x: f"CASE WHEN {x[0]} THEN {x[1]} ELSE {x[2]} END"),
        st.tuples(inner, inner, inner).map(lambda x: f"CASE {x[0]} WHEN {x[1]} THEN {x[2]} END"),
        st.tuples(inner, of(("", "NOT ")), inner, inner).map(lambda x: f"{x[0]} {x[1]}BETWEEN {x[2]} AND {x[3]}"),
        st.tuples(inner, of(("", "NOT ")), some).map(lambda x: f"{x[0]} {x[1]}IN ({x[2]})"),
        st.tuples(inner, of(("NULL", "NOT NULL", "TRUE", "NOT FALSE", "UNKNOWN"))).map(" IS ".join),
        st.tuples(inner, inner).map(lambda x: f"{x[0]}[{x[1]}]"),
        st.tuples(of(("YEAR", "DOW", "EPOCH", "NOPE")), inner).map(lambda x: f"EXTRACT({x[0]} FROM {x[1]})"),
        st.tuples(inner, of(LENGTHS)).map(lambda x: f"{x[0]} + INTERVAL {x[1]}"),
        some.map(lambda x: f"({x})"),
    )


expressions = st.recursive(columns | st.sampled_from(LITERALS), made_of, max_leaves=6)
near = st.one_of(columns, columns, expressions)


@st.composite
def queries(draw: st.DrawFn, deep: int = 2) -> str:
    """A SELECT, or several."""

    def perhaps(text: str, of: st.SearchStrategy[str], chance: int = 4) -> str:
        return text.format(draw(of)) if draw(st.integers(1, chance)) == 1 else ""

    def source() -> str:
        if deep and draw(st.integers(1, 5)) == 1:
            return f"({draw(queries(deep - 1))}) AS {draw(st.sampled_from(['A', 'B', 'x']))}"
        return draw(st.sampled_from(["A", "B", "A", "B", "rates", "nope", "A a"])) + draw(st.sampled_from(WINDOWS))

    kinds = st.sampled_from(
        [
            ", {}",
            " JOIN {} ON {}",
            " LEFT JOIN {} ON {}",
            " FULL JOIN {} USING (k)",
            " CROSS JOIN {}",
            " ASOF JOIN {} ON {}",
            " NATURAL JOIN {}",
            " LEFT JOIN LATERAL {} ON {}",
            " CROSS JOIN UNNEST(l)",
        ]
    )
    text = f"SELECT {perhaps('{} ', st.sampled_from(['DISTINCT', 'DISTINCT ON (k)', 'ALL']))}"
    text += ", ".join(
        draw(near) + perhaps(" AS {}", st.sampled_from(["x", "k", "_ts"])) for _ in range(draw(st.integers(1, 3)))
    )
    text += f" FROM {source()}"
    for _ in range(draw(st.integers(0, 2))):
        text += draw(kinds).format(source(), draw(st.just("A.k = B.k") | near))
    text += perhaps(" WHERE {}", st.just("A.k = B.k") | near, 2)
    if deep:
        text += perhaps(" AND EXISTS ({})", queries(deep - 1), 9) + perhaps(" AND k IN ({})", queries(deep - 1), 9)
    windows = st.tuples(
        st.sampled_from(["TUMBLE", "HOP", "SESSION", "CUMULATE"]), near, joined(", ", st.sampled_from(LENGTHS), 0, 2)
    )
    text += perhaps(" GROUP BY {}", joined(", ", near | windows.map(lambda x: f"{x[0]}({x[1]}, {x[2]})"), 1, 3), 3)
    text += perhaps(" HAVING {}", near, 6) + perhaps(" QUALIFY {}", near, 12)
    text += perhaps(" WINDOW {}", st.sampled_from(LENGTHS), 2) + perhaps(" EVERY {}", st.sampled_from(LENGTHS), 5)
    text += perhaps(" ORDER BY {}", near, 12) + perhaps(" LIMIT {}", near, 12)
    if deep and draw(st.integers(1, 9)) == 1:
        operations = st.sampled_from(["UNION", "UNION ALL", "EXCEPT", "INTERSECT", "EXCEPT ON (k)"])
        text += f" {draw(operations)} {draw(queries(0))}"
    return text


KEPT = (
    "SELECT " + "+".join(["A.k"] * 300) + " AS x FROM A, B WHERE A.k = B.k WINDOW 1 SECOND",
    "SELECT s[FLOOR()] AS x FROM A",
    "SELECT s[CEIL(, )] AS x FROM A",
    "SELECT " + "IF(A.o, 1, " * 50 + "0" + ")" * 50 + " AS x FROM A, B WHERE A.k = B.k WINDOW 1 SECOND",
)
"""Texts that ended in a fault once."""


@pytest.mark.parametrize("text", KEPT)
def test_a_text_that_was_a_fault_once_ends_well(text: str) -> None:
    ends_well(text)


@drawing(500, soak=200)
@given(queries())
def test_a_text_of_the_grammar_ends_well(text: str) -> None:
    ends_well(text)
