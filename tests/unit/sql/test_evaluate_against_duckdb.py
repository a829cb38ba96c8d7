"""Random expressions: what we compute is what DuckDB computes.

Each drawn expression is a pair of texts. They differ where midstream cannot evaluate and DuckDB raises an error
(`TRY`), and in arithmetic of integers, which midstream does in wider types: there DuckDB is given HUGEINTs (`MACROS`).
"""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from midstream.expr.evaluate import evaluate, holds
from midstream.expr.expression import Expression
from midstream.model.errors import LanguageError
from midstream.model.schema import StreamSchema
from midstream.sql.parse import parse_query
from tests.duck import database
from tests.oracle.values import agree

NAN, INF = float("nan"), float("inf")
UTC_DAY = datetime.datetime(1970, 1, 1)
TABLE = pa.table(
    {
        "ti": pa.array([1, None, -128, 127, 0, 3, -3, 5], pa.int8()),
        "i": pa.array([1, 2, None, 2**31 - 1, -(2**31), 0, -7, 5], pa.int32()),
        "b": pa.array([1, None, 2**63 - 1, -(2**63), 0, -5, 10**12, 5], pa.int64()),
        "j": pa.array([3, 1, -2, None, 7, 0, 5, 5], pa.int64()),
        "f": pa.array([0.5, NAN, None, -0.0, 1e30, -2.25, 3.0, 5.0], pa.float32()),
        "d": pa.array([0.5, NAN, -0.0, None, 1e308, -2.5, INF, 5.0], pa.float64()),
        "e": pa.array([1.5, 2.5, 0.0, NAN, -1e308, None, -INF, 5.0], pa.float64()),
        "dc": pa.array([*map(Decimal, ("1.25", "-2.50", "0.00", "99999.99", "-0.01", "5.00", "7.77")), None]).cast(
            pa.decimal128(9, 2)
        ),
        "s": ["a", "b%", None, "ähh", " x ", "", "a_b", "Ab\n日"],
        "t": ["a", "B%", "ä", None, "x", "5", "a.b", "%"],
        "ts": pa.array([0, 1, None, 10**15, -5, 10**12 + 500_000, 86_400_000_000, 1], pa.timestamp("us")),
        "u": pa.array([1, 1, 5, None, -6, 10**12, 86_399_999_999, 0], pa.timestamp("us")),
        "da": pa.array([0, 1, None, 11574, -1, 20_000, 1, 0], pa.date32()),
        "db": pa.array([1, 1, 5, None, -3, 19_999, 0, 0], pa.date32()),
        "p": [True, False, None, True, False, None, True, False],
        "q": [True, True, True, None, None, None, False, False],
    }
)
A = StreamSchema("A", TABLE.schema, "ts")
Pair = tuple[str, str]


def both(*texts: str) -> st.SearchStrategy[Pair]:
    return st.sampled_from([(t, t) for t in texts])


def form(template: str, oracle: str | None = None) -> Any:
    """Expressions put into a template; the oracle's may differ."""

    def put(*parts: Pair) -> Pair:
        ours, theirs = [p[0] for p in parts], [p[1] for p in parts]
        return template.format(*ours), (oracle or template).format(*theirs)

    return put


INTEGERS = both("ti", "i", "b", "j", "1", "2", "(-3)", "0", "100", "3000000000")
FLOATS = both("d", "e", "f", "1e0", "(-2.5e0)", "0e0")
DECIMALS = both("dc", "0.5", "(-1.25)", "2.0")
TEXTS = both("s", "t", "'a'", "'%'", "''", "'ä'")
STAMPS = both("ts", "u", "TIMESTAMP '1970-01-12 13:46:40.5'", "da", "db")
DATES = both("da", "db", "DATE '2001-09-09'")
BOOLS = both("p", "q", "TRUE", "FALSE", "NULL")
SPANS = both("INTERVAL 1 SECOND", "INTERVAL '2' DAY", "INTERVAL 500 MILLISECONDS", "INTERVAL '-3 hours'")


@st.composite
def number(draw: st.DrawFn, depth: int) -> Pair:
    if depth == 0:
        return draw(st.one_of(INTEGERS, FLOATS, DECIMALS))
    n = number(depth - 1)
    whole = INTEGERS if depth == 1 else st.builds(form("({0} + {1})", "plus({0}, {1})"), INTEGERS, INTEGERS)
    return draw(
        st.one_of(
            n,
            *(
                st.builds(form(f"({{0}} {o} {{1}})", f"{w}({{0}}, {{1}})"), n, n)
                for o, w in (("+", "plus"), ("-", "minus"))
            ),
            st.builds(form("({0} * {1})", "times({0}, {1})"), n, st.one_of(FLOATS, both("j", "2", "ti"))),
            st.builds(form("({0} / {1})"), n, n),
            st.builds(form("({0} % {1})", "TRY({0} % nullif({1}, 0))"), whole, whole),
            st.builds(form("({0} // {1})", "TRY({0} // nullif({1}, 0))"), whole, whole),
            st.builds(form("(-{0})", "negative({0})"), n),
            st.builds(form("abs({0})", "size({0})"), n),
            st.builds(form("sqrt({0})"), n),
            st.builds(form("ln({0})"), n),
            st.builds(form("floor({0})"), st.one_of(FLOATS, INTEGERS, DECIMALS)),
            st.builds(form("ceil({0})"), st.one_of(FLOATS, INTEGERS, DECIMALS)),
            st.builds(form("round({0})"), st.one_of(FLOATS, INTEGERS, DECIMALS)),
            st.builds(form("round({0}, 1)"), st.one_of(both("dc", "d", "j"))),
            st.builds(form("coalesce({0}, {1})"), n, n),
            st.builds(form("nullif({0}, {1})"), both("d", "e", "j", "b", "dc"), n),
            st.builds(form("least({0}, {1})"), n, n),
            st.builds(form("greatest({0}, {1})"), n, n),
            st.builds(form("CASE WHEN {0} THEN {1} ELSE {2} END"), boolean(depth - 1), n, n),
            st.builds(form("CASE WHEN {0} THEN {1} END"), boolean(depth - 1), n),
            st.builds(form("CASE j WHEN 5 THEN {0} WHEN 7 THEN {1} END"), n, n),
            st.builds(form("length({0})"), text(depth - 1)),
            st.builds(form("CAST({0} AS BIGINT)", "TRY_CAST({0} AS BIGINT)"), n),
            st.builds(form("TRY_CAST({0} AS SMALLINT)"), st.one_of(FLOATS, INTEGERS, DECIMALS)),
            st.builds(form("CAST({0} AS DOUBLE)", "TRY_CAST({0} AS DOUBLE)"), st.one_of(n, both("t"))),
            *(
                st.builds(form(f"{part}({{0}})"), STAMPS)
                for part in ("year", "month", "day", "hour", "minute", "second")
            ),
            st.builds(form("EXTRACT(dow FROM {0})"), STAMPS),
            st.builds(form("({0} - {1})"), DATES, DATES),
        )
    )


@st.composite
def text(draw: st.DrawFn, depth: int) -> Pair:
    if depth == 0:
        return draw(TEXTS)
    t = text(depth - 1)
    return draw(
        st.one_of(
            t,
            st.builds(form("({0} || {1})"), t, st.one_of(t, both("j", "dc", "da"))),
            st.builds(form("concat({0}, {1})"), t, st.one_of(t, both("i"))),
            st.builds(form("lower({0})"), t),
            st.builds(form("upper({0})"), t),
            st.builds(form("trim({0})"), t),
            st.builds(form("ltrim({0}, 'a ')"), t),
            st.builds(
                form("substring({0}, {1}, {2})"),
                t,
                both("1", "2", "0", "-2", "-9", "j"),
                both("1", "0", "3", "j", "-1"),
            ),
            st.builds(form("substring({0}, {1})"), t, both("1", "2", "0", "-2", "-9", "j")),
            st.builds(form("coalesce({0}, {1})"), t, t),
            st.builds(form("greatest({0}, {1})"), t, t),
            st.builds(form("CAST({0} AS VARCHAR)"), both("j", "dc", "da", "ts", "p")),
        )
    )


@st.composite
def moment(draw: st.DrawFn, depth: int) -> Pair:
    if depth == 0:
        return draw(STAMPS)
    m = moment(depth - 1)
    return draw(
        st.one_of(
            m,
            st.builds(form("({0} + {1})"), m, SPANS),
            st.builds(form("({1} + {0})"), m, SPANS),
            st.builds(form("({0} - {1})"), m, SPANS),
            st.builds(form("({0} + {1})"), DATES, both("1", "(-7)", "ti")),
            st.builds(form("coalesce({0}, {1})"), m, m),
            st.builds(form("greatest({0}, {1})"), m, m),
            st.builds(form("CAST({0} AS DATE)"), m),
        )
    )


@st.composite
def boolean(draw: st.DrawFn, depth: int) -> Pair:
    if depth == 0:
        return draw(BOOLS)
    b, n, t, m = boolean(depth - 1), number(depth - 1), text(depth - 1), moment(depth - 1)
    pairs = [(n, n), (t, t), (m, m), (BOOLS, BOOLS)]
    kind = draw(st.sampled_from(pairs))
    operator = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]))
    patterns = both("'%a%'", "'a_b'", "'_'", "'%'", "''", "'b\\%'", "'B%'", "'%h'", "t")
    return draw(
        st.one_of(
            st.builds(form(f"({{0}} {operator} {{1}})"), *kind),
            st.builds(form("({0} AND {1})"), b, b),
            st.builds(form("({0} OR {1})"), b, b),
            st.builds(form("(NOT {0})"), b),
            st.builds(form("({0} IS NULL)"), st.one_of(b, n, t, m)),
            st.builds(form("({0} IS NOT NULL)"), st.one_of(b, n, t, m)),
            st.builds(form("({0} IS TRUE)"), b),
            st.builds(form("({0} IS NOT FALSE)"), b),
            st.builds(form("({0} BETWEEN {1} AND {2})"), n, n, n),
            st.builds(form("({0} NOT BETWEEN {1} AND {2})"), m, m, m),
            st.builds(form("({0} IN ({1}, {2}))"), n, n, n),
            st.builds(form("({0} NOT IN (1, 5, 7, -2, 9, NULL))"), both("j", "b", "i")),
            st.builds(form("({0} IN ('a', 'b%', 'ä', '', 'x', 'y'))"), t),
            st.builds(form("({0} LIKE {1})"), t, patterns),
            st.builds(form("({0} NOT LIKE {1})"), t, patterns),
            st.builds(form("({0} ILIKE {1})"), t, patterns),
            st.builds(form("({0} LIKE 'b!%' ESCAPE '!')"), t),
            st.builds(form("(({0} - {1}) < {2})"), both("ts", "u"), both("ts", "u"), SPANS),
        )
    )


def _macro(name: str, template: str, *names: str) -> str:
    whole = " AND ".join(f"typeof({n}) LIKE '%INT%'" for n in names)
    wide, plain = template.format(*(f"{n}::HUGEINT" for n in names)), template.format(*names)
    return f"CREATE TEMP MACRO {name}({', '.join(names)}) AS CASE WHEN {whole} THEN TRY({wide}) ELSE TRY({plain}) END;"


MACROS = "".join(
    [_macro(name, f"({{}} {sign} {{}})", "x", "y") for name, sign in (("plus", "+"), ("minus", "-"), ("times", "*"))]
    + [_macro("negative", "(-({}))", "x"), _macro("size", "abs({})", "x")]
)


@pytest.fixture(scope="module")
def oracle() -> duckdb.DuckDBPyConnection:
    connection = database()
    connection.execute(MACROS)
    connection.register("A", TABLE)
    return connection


def bound_of(expression: str) -> Expression:
    try:
        return parse_query(f"SELECT {expression} AS x FROM A", {"A": A}).outputs[0].expression
    except LanguageError as error:
        assume("has no value for" not in str(error))  # Constants that have no value are refused.
        raise


def ours(expression: str) -> list[Any]:
    bound = bound_of(expression)
    found = evaluate(bound, lambda c: TABLE[c.name].combine_chunks(), TABLE.num_rows)
    found.validate(full=True)
    assert found.type == bound.type
    return list(found.to_pylist())


def check(oracle: duckdb.DuckDBPyConnection, pair: Pair) -> None:
    mine, theirs = pair
    try:
        expected = [row[0] for row in oracle.execute(f"SELECT {theirs} FROM A").fetchall()]
    except duckdb.Error as error:
        assert "overflow" in str(error).lower() or "range" in str(error).lower() or "Cannot" in str(error), str(error)
        return
    found = ours(mine)
    wrong = [(n, a, b) for n, (a, b) in enumerate(zip(found, expected, strict=True)) if not agree(a, b, relative=1e-6)]
    assert not wrong, (mine, wrong)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(pair=st.one_of(number(2), text(2), moment(2)))
def test_values(oracle: duckdb.DuckDBPyConnection, pair: Pair) -> None:
    check(oracle, pair)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(pair=boolean(2))
def test_conditions(oracle: duckdb.DuckDBPyConnection, pair: Pair) -> None:
    check(oracle, pair)


@pytest.mark.parametrize("text", ["A.j BETWEEN -2 AND 3", "A.j >= -2 AND A.j <= 3", "NOT (A.j < -2 OR A.j > 3)"])
def test_a_range_holds_at_both_ends_and_of_no_null(text: str) -> None:
    found = holds(bound_of(text), lambda c: TABLE[c.name].combine_chunks(), TABLE.num_rows)
    assert found.tolist() == [True, True, True, False, False, True, False, False]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(pair=boolean(2))
def test_holds_is_evaluate_with_null_as_false(pair: Pair) -> None:
    expression = bound_of(pair[0])
    found = holds(expression, lambda c: TABLE[c.name].combine_chunks(), TABLE.num_rows)
    assert found.tolist() == [value is True for value in ours(pair[0])]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(pair=st.one_of(number(2), text(2), moment(2), boolean(2)), start=st.integers(0, 7), rows=st.integers(0, 5))
def test_a_part_of_the_rows_has_a_part_of_the_values(pair: Pair, start: int, rows: int) -> None:
    bound = bound_of(pair[0])
    part = TABLE.slice(start, rows)
    found = evaluate(bound, lambda c: TABLE[c.name].combine_chunks().slice(start, rows), part.num_rows).to_pylist()
    whole = ours(pair[0])[start : start + rows]
    assert len(found) == len(whole) and all(agree(a, b, relative=1e-6) for a, b in zip(found, whole, strict=True))


DOUBLES = [0.5, -0.5, 1.5, 2.5, -2.5, 0.125, -0.125, 1.005, 2.675, 0.49999999999999994, -0.0, 0.0, 127.5, -128.5]
DOUBLES += [99.994, 99.995, -99.995, 1e15, 4503599627370497.5, 2.0**63, 1e22, 1.7e308, -1.7e308, 1e-300, 5e-324]
DOUBLES += [NAN, INF, -INF]
WHOLES = [0, 1, -1, 5, -5, 14, 15, -15, 50, -50, 449, 450, 127, 128, -128, -129, 2**31 - 1, 2**31, 10**15, -(10**15)]
DIGITS = [
    "0.00",
    "0.05",
    "-0.05",
    "1.25",
    "-1.25",
    "0.50",
    "-0.50",
    "2.50",
    "9.95",
    "94.99",
    "99.99",
    "-99.99",
    "127.50",
]
GREAT = ["2147483647.50", "9223372036854775807.50", "999999999999999999.99", "-999999999999999999.99"]
NUMERALS = ["0.125", "-0.125", "2.5", "-2.5", "1.5e-1", "1e3", ".5", "5.", " 7 ", "99.995", "127.5", "-128.5", "1_000"]
NUMERALS += ["nan", "inf", "", ".", "-", "1e", "1e400", "1e-400", "9223372036854775807", "9223372036854775808"]
NUMERALS += ["0.1" + "0" * 60]
EDGES = {
    "d": pa.array([*DOUBLES, None], pa.float64()),
    "f": pa.array([*(d for d in DOUBLES if not 3e38 < abs(d) < INF), None], pa.float32()),
    "b": pa.array([*WHOLES, 2**63 - 1, -(2**63), None], pa.int64()),
    "i": pa.array([*(w for w in WHOLES if -(2**31) <= w < 2**31), None], pa.int32()),
    "u": pa.array([*(w for w in WHOLES if w >= 0), 2**64 - 1, None], pa.uint64()),
    "m": pa.array([*map(Decimal, DIGITS), None], pa.decimal128(5, 2)),
    "w": pa.array([*map(Decimal, [*DIGITS, *GREAT]), None], pa.decimal128(38, 2)),
    "t": pa.array([*NUMERALS, None], pa.string()),
}
EDGE_TYPES = ("TINYINT", "INTEGER", "BIGINT", "UBIGINT", "DECIMAL(4, 2)", "DECIMAL(9, 2)", "DECIMAL(18, 0)")
WIDE_TYPES = ("DECIMAL(38, 10)", "DECIMAL(38, 0)", "DECIMAL(3, 3)")
AT_THE_EDGES: dict[str, list[str]] = {
    "d": [*(f"round(d, {n})" for n in (0, 1, 2, 15, 300, -1, -2)), "floor(d)", "ceil(d)"],
    "f": [*(f"round(f, {n})" for n in (0, 1, 2, 15, -1, -2)), "floor(f)", "ceil(f)"],
    "m": [*(f"round(m, {n})" for n in (0, 1, 2, 5)), "floor(m)", "ceil(m)", "(m * m)"],
    "w": [*(f"round(w, {n})" for n in (0, 1, 2, 5)), "floor(w)", "ceil(w)", "(w * 10)", "(w + w)", "(w - 0.5)"],
    "i": [*(f"round(i, {n})" for n in (0, 2, -1, -2, -9, -12)), *(f"(i {o} {n})" for o in "+-*" for n in ("1", "i"))],
    "b": [*(f"round(b, {n})" for n in (-1, -2, -18)), *(f"(b {o} {n})" for o in "+-*" for n in ("1", "b", "(-1)"))],
    "u": ["round(u, -2)", "(u + 1)", "(u * u)"],
    "t": [],
}
AT_THE_EDGES = {
    column: [
        *expressions,
        *(["abs({c})", "(-{c})"] if column in "dfmwib" else []),
        *(f"TRY_CAST({{c}} AS {type})" for type in EDGE_TYPES),
        *(f"TRY_CAST({{c}} AS {type})" for type in WIDE_TYPES if column in "dbw"),
        *(f"TRY_CAST({{c}} AS {type})" for type in ("DOUBLE", "FLOAT") if column in "bumw"),
    ]
    for column, expressions in AT_THE_EDGES.items()
}
NO_SIGN = "TRY_CAST(t AS UBIGINT)"
"""DuckDB refuses a text with a minus here, -0.125 too, which it rounds to 0 for every other type."""


@pytest.mark.parametrize(
    ("column", "expression"), [(c, e.format(c=c)) for c, expressions in AT_THE_EDGES.items() for e in expressions]
)
def test_numbers_at_the_edges_are_rounded_cast_and_reckoned_as_duckdb_does(column: str, expression: str) -> None:
    given = EDGES[column]
    table = pa.table({column: given, "ts": pa.array([0] * len(given), pa.timestamp("us"))})
    connection = database()
    connection.register("E", table)
    theirs = "TRY_CAST(TRY_CAST(t AS DECIMAL(38, 0)) AS UBIGINT)" if expression == NO_SIGN else f"TRY({expression})"
    if column in "ibu" and (expression.startswith(("abs", "(-")) or " " in expression[:4]):
        theirs = f"TRY({re.sub(rf'(?<![a-z]){column}(?![a-z])', f'{column}::HUGEINT', expression)})"
    expected = [row[0] for row in connection.execute(f"SELECT {theirs} FROM E").fetchall()]
    schema = StreamSchema("E", table.schema, "ts")
    bound = parse_query(f"SELECT {expression} AS x FROM E", {"E": schema}).outputs[0].expression
    found = evaluate(bound, lambda c: table[c.name].combine_chunks(), table.num_rows)
    found.validate(full=True)
    rows = zip(given.to_pylist(), found.to_pylist(), expected, strict=True)
    wrong = [row for row in rows if not agree(row[1], row[2], relative=1e-6)]
    assert not wrong, wrong


READABLE = ["nan", "1e5", " 7 ", "true", "t", "x", "", "2020-01-02", "2020-01-02 03:04:05.5", "2020-01-02T03:04"]
READABLE += ["1.5", "-2.5", "+5", "1e30", "99999999999", "0x10", "12:00:00"]


@pytest.mark.parametrize(
    "type",
    [
        "DOUBLE",
        "FLOAT",
        "BIGINT",
        "TINYINT",
        "BOOLEAN",
        "DATE",
        "TIMESTAMP",
        "TIMESTAMP_NS",
        "TIMESTAMP_MS",
        "TIMESTAMP_S",
        "DECIMAL(9, 2)",
    ],
)
def test_texts_are_read_as_duckdb_reads_them(type: str) -> None:
    texts = pa.table({"t": [*READABLE, None]})
    connection = database()
    connection.register("T", texts)
    expected = [row[0] for row in connection.execute(f"SELECT TRY_CAST(t AS {type}) FROM T").fetchall()]
    bound = parse_query(f"SELECT CAST(t AS {type}) AS x FROM A", {"A": A}).outputs[0].expression
    found = evaluate(bound, lambda c: texts[c.name].combine_chunks(), texts.num_rows).to_pylist()
    assert all(agree(a, b, relative=1e-6) for a, b in zip(found, expected, strict=True)), list(
        zip(READABLE, found, expected, strict=False)
    )
