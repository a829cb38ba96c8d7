from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from midstream.logical.query import Aggregate, BandPredicate, Difference, EquiPredicate, Query
from midstream.model.errors import LanguageError
from midstream.model.window import Window
from midstream.sql.parse import parse_query
from midstream.sql.parts import Statement
from tests.unit.sql.schemas import STREAMS, parsed

SECOND = 1_000_000


def outputs(query: Query) -> list[tuple[str, str]]:
    return [(o.name, o.expression.text()) for o in query.outputs]


def selections(query: Query) -> list[tuple[str, str]]:
    return [(alias, e.text()) for alias, e in query.selections]


def predicates(query: Query) -> list[tuple[str, str]]:
    return [(type(p).__name__, p.expression.text()) for p in query.predicates]


def test_the_query_of_the_public_face() -> None:
    query = parsed(
        "SELECT A.k, A.v, B.v AS w FROM A [RANGE 20 SECONDS], B [RANGE 20 SECONDS], C [RANGE 20 SECONDS]"
        " WHERE A.k = B.k AND B.k = C.k AND A.v > 0.5"
    )
    assert outputs(query) == [("k", "A.k"), ("v", "A.v"), ("w", "B.v")]
    assert selections(query) == [("A", "gt(A.v, 0.5::double)")]
    assert predicates(query) == [("EquiPredicate", "eq(A.k, B.k)"), ("EquiPredicate", "eq(B.k, C.k)")]
    assert [s.window for s in query.sources] == [Window("range", 20 * SECOND)] * 3


@pytest.mark.parametrize(
    ("source", "window"),
    [
        ("A [RANGE 5 SECONDS]", Window("range", 5 * SECOND)),
        ("A [range 1.5 minutes] a", Window("range", 90 * SECOND)),
        ("A AS a [RANGE INTERVAL '2' HOUR]", Window("range", 7200 * SECOND)),
        ("A a [RANGE '1 day']", Window("range", 86_400 * SECOND)),
        ("A [ROWS 7] AS a", Window("rows", 7)),
        ("A [RANGE 0 SECONDS]", Window("range", 0)),
        ("A [NOW]", Window("range", 0)),
        ("A", Window("range", 3 * SECOND)),
    ],
)
def test_windows(source: str, window: Window) -> None:
    query = parsed(f"SELECT B.k FROM {source}, B WINDOW 3 SECONDS")
    assert [s.window for s in query.sources] == [window, Window("range", 3 * SECOND)]


def test_a_query_over_one_stream_needs_no_window() -> None:
    assert parsed("SELECT k FROM A").sources[0].window is None


def test_joins_are_flattened_in_any_order_of_writing() -> None:
    query = parsed(
        "SELECT a.k FROM A [ROWS 3] a JOIN B [ROWS 3] b ON a.k = b.k AND b.v > 1 INNER JOIN C [ROWS 3] c ON c.k = b.k"
        " CROSS JOIN D [ROWS 3] WHERE a.o"
    )
    assert query.aliases == ("a", "b", "c", "D")
    assert [name for name, _ in predicates(query)] == ["EquiPredicate", "EquiPredicate"]
    assert selections(query) == [("b", "gt(b.v, 1.0::double)"), ("a", "a.o")]


def test_names_match_exactly_first_and_then_in_any_case() -> None:
    query = parsed('SELECT X.K, Y.s FROM "Odd Name" [ROWS 1] X, a [ROWS 1] y WHERE x.k = y.K')
    assert outputs(query) == [("K", "X.K"), ("s", "y.s")]
    assert [s.stream for s in query.sources] == ["Odd Name", "A"]


def test_equal_output_names_are_numbered() -> None:
    query = parsed("SELECT a.k, b.k, b.v AS K_1, a.k + 1 FROM A [ROWS 1] a, A [ROWS 1] b")
    assert [o.name for o in query.outputs] == ["k", "k_1", "K_1_1", "a.k + 1"]


def test_stars() -> None:
    query = parsed('SELECT b.*, *, _ts FROM A [ROWS 1], "Odd Name" [ROWS 1] b')
    names = [text for _, text in outputs(query)]
    assert names[:2] == ["b.K", "b.ts"]
    assert names[2] == "A.k" and names[-1] == "_ts" and len(names) == 2 + 13 + 2 + 1
    assert query.outputs[-1].expression.type == pa.timestamp("us")


def test_what_a_subquery_selects_stands_in_the_place_of_its_columns() -> None:
    query = parsed("SELECT w, x.k FROM (SELECT k, v * 2 AS w FROM A AS inner1 WHERE inner1.v > 0) AS x WHERE w < 9")
    assert outputs(query) == [("w", "mul(x.v, 2.0::double)"), ("k", "x.k")]
    assert [s.stream for s in query.sources] == ["A"] and {alias for alias, _ in query.selections} == {"x"}
    assert len(query.selections) == 2


def test_distinct_is_a_group_of_all_that_is_selected() -> None:
    one = parsed("SELECT DISTINCT A.k, B.s AS t, A.v + 1 FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS EVERY 1 SECOND")
    other = parsed(
        "SELECT A.k, B.s AS t, A.v + 1 FROM A, B WHERE A.k = B.k GROUP BY A.k, B.s, A.v + 1 "
        "WINDOW 5 SECONDS EVERY 1 SECOND"
    )
    assert (one.outputs, one.on_top, one.predicates) == (other.outputs, other.on_top, other.predicates)


@pytest.mark.parametrize("negated", ["", "NOT "])
def test_in_reads_the_columns_of_a_table_of_with(negated: str) -> None:
    text = "WITH x AS (SELECT k FROM B), y AS (SELECT * FROM x) SELECT A.k FROM A WHERE A.k {}IN (SELECT {} FROM y)"
    bare, full = (parsed(text.format(negated, column) + " WINDOW 5 SECONDS") for column in ("k", "y.k"))
    assert [p.expression.text() for p in bare.predicates] == [p.expression.text() for p in full.predicates]
    assert all("y.k" in p.expression.text() for p in bare.predicates) and bare.predicates


def test_tables_of_with_stand_on_each_other_and_hide_streams() -> None:
    query = parsed(
        "WITH A AS (SELECT k, v FROM A WHERE k > 1), y AS (SELECT k AS kk FROM A WHERE v < 2) "
        "SELECT y.kk, B.k FROM y, B WHERE y.kk = B.k WINDOW 5 SECONDS"
    )
    assert [(s.alias, s.stream) for s in query.sources] == [("y", "A"), ("B", "B")]
    assert [p.expression.text() for p in query.predicates] == ["eq(y.k, B.k)"]
    assert [e.columns() and next(iter(e.columns())).name for _, e in query.selections] == ["k", "v"]


def test_using_is_an_equality_and_its_column_one() -> None:
    query = parsed("SELECT k, b.k AS other FROM A [ROWS 1] a JOIN A [ROWS 1] b USING (k) JOIN B [ROWS 1] c USING (k)")
    assert outputs(query) == [("k", "a.k"), ("other", "b.k")]
    assert [p.expression.text() for p in query.predicates] == ["eq(a.k, b.k)", "eq(a.k, c.k)"]
    names = [text for _, text in outputs(parsed("SELECT * FROM A [ROWS 1] a JOIN A [ROWS 1] b USING (k, ts)"))]
    assert "a.k" in names and "b.k" not in names and "b.ts" not in names and "b.v" in names


def test_a_text_beside_a_timestamp_with_a_zone_is_read_in_utc() -> None:
    query = parsed("SELECT CAST(ts AS TIMESTAMPTZ) < '2020-01-01' AS x FROM A [ROWS 1]")
    assert "2020" in outputs(query)[0][1]


def test_conjuncts_by_number_of_sources() -> None:
    query = parsed(
        "SELECT A.k FROM A [ROWS 1], B [ROWS 1] WHERE 1 > 2 AND (A.k = 1 OR A.v > 2) AND TRUE AND A.k + B.k = 3"
    )
    assert selections(query) == [("", "False::bool"), ("A", "or(eq(A.k, 1::int64), gt(A.v, 2.0::double))")]
    assert len(query.predicates) == 1


@pytest.mark.parametrize(
    ("condition", "kind"),
    [
        ("A.k = B.k", EquiPredicate),
        ("A.k = B.i", EquiPredicate),
        ("A.k + A.i = abs(B.k)", EquiPredicate),
        ("lower(A.s) = B.code", EquiPredicate),
        ("A.d = B.ts", EquiPredicate),
        ("A.k = B.m", EquiPredicate),
        ("A.k < B.k", BandPredicate),
        ("A.k - B.k = 3", BandPredicate),
        ("abs(A.v - B.v) < 0.5", BandPredicate),
        ("0.5 >= abs(A.v - B.v)", BandPredicate),
        ("A.v + B.v BETWEEN 1 AND 2", BandPredicate),
        ("A.ts BETWEEN B.ts - INTERVAL 5 SECONDS AND B.ts + INTERVAL 5 SECONDS", BandPredicate),
        ("A.ts - B.ts < INTERVAL 1 DAY", BandPredicate),
        ("A.d <= B.d + 3", BandPredicate),
        ("A.m >= B.m - 1.5", BandPredicate),
        ("abs(A.v - B.v) > 0.5", None),
        ("A.s < B.s", None),
        ("A.k <> B.k", None),
        ("A.k = B.k OR A.v = B.v", None),
        ("A.k * B.k < 3", None),
        ("A.k IS NOT DISTINCT FROM B.k OR A.k = 1", None),
        ("A.f - B.f < 1", None),
        ("A.k < B.k + A.i + C.k", None),
    ],
)
def test_predicates_are_of_the_best_kind(condition: str, kind: type | None) -> None:
    (found,) = parsed(f"SELECT A.k FROM A [ROWS 1], B [ROWS 1], C [ROWS 1] WHERE {condition}").predicates
    assert type(found).__name__ == (kind.__name__ if kind else "Predicate")
    if isinstance(found, EquiPredicate | BandPredicate):
        assert found.left.type == found.right.type
        assert len(found.left.aliases()) == len(found.right.aliases()) == 1
    if isinstance(found, BandPredicate):
        assert found.left.type in (pa.int64(), pa.float64())


def test_both_sides_of_an_equality_get_one_type() -> None:
    query = parsed("SELECT A.k FROM A [ROWS 1], B [ROWS 1] WHERE A.i = B.k AND A.d = B.ts AND A.code = B.s")
    assert [p.expression.text() for p in query.predicates] == [
        "eq(cast(A.i)::int64, B.k)",
        "eq(cast(A.d)::timestamp[us], B.ts)",
        "eq(cast(A.code)::string, B.s)",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A.ts > '2013-01-01'", "gt(A.ts, datetime.datetime(2013, 1, 1, 0, 0)::timestamp[us])"),
        ("A.d = '2013-01-01'", "eq(A.d, datetime.date(2013, 1, 1)::date32[day])"),
        ("A.m = 9.99", "eq(A.m, Decimal('9.99')::decimal128(10, 2))"),
        ("A.k > 0.5", "gt(cast(A.k)::double, 0.5::double)"),
        ("A.raw = 'ab'", "eq(A.raw, b'ab'::binary)"),
        ("A.k % -2 = 0", "eq(mod(A.k, -2::int64), 0::int64)"),
        ("A.s NOT LIKE 'a!%' ESCAPE '!'", "not(like(A.s, 'a!%'::string, '!'::string))"),
        ("A.o IS NOT TRUE", "not(coalesce(A.o, False::bool))"),
    ],
)
def test_literals_take_the_type_of_what_stands_beside_them(text: str, expected: str) -> None:
    assert selections(parsed(f"SELECT k FROM A WHERE {text}")) == [("A", expected)]


def test_aggregates() -> None:
    query = parsed(
        "SELECT A.k % 3 AS g, COUNT(*) AS n, SUM(A.v) / COUNT(*) AS mean, MEDIAN(B.i), COUNT(DISTINCT B.s), MAX(A.ts),"
        " _ts FROM A [RANGE 5 SECONDS], B [RANGE 5 SECONDS] WHERE A.k = B.k GROUP BY g EVERY 2 SECONDS"
    )
    assert isinstance(query.on_top, Aggregate)
    assert [g.text() for g in query.on_top.groups] == ["mod(A.k, 3::int64)"]
    calls = [(c.function, c.argument and c.argument.text(), c.distinct) for c in query.on_top.calls]
    assert calls == [
        ("count", None, False),
        ("sum", "A.v", False),
        ("median", "B.i", False),
        ("count", "B.s", True),
        ("max", "A.ts", False),
    ]
    assert query.on_top.every == 2 * SECOND
    texts = [text for _, text in outputs(query)]
    assert texts == ["#.g0", "#.a0", "div(#.a1, cast(#.a0)::double)", "#.a2", "#.a3", "#.a4", "_ts"]


@pytest.mark.parametrize("group", ["k + 1", "1", "g", "K + 1"])
def test_groups_by_expression_ordinal_and_alias(group: str) -> None:
    query = parsed(f"SELECT k + 1 AS g, (k + 1) * 2, COUNT(*) FROM A [ROWS 9] GROUP BY {group} EVERY 1 SECOND")
    assert [text for _, text in outputs(query)] == ["#.g0", "mul(#.g0, Decimal('2')::decimal128(1, 0))", "#.a0"]


def test_a_column_is_meant_before_an_alias_in_group_by() -> None:
    query = parsed("SELECT v AS w, COUNT(*) AS k FROM A [ROWS 9] GROUP BY k, v EVERY 1 SECOND")
    assert isinstance(query.on_top, Aggregate)
    assert [g.text() for g in query.on_top.groups] == ["A.k", "A.v"]


@pytest.mark.parametrize(
    ("call", "type"),
    [
        ("COUNT(s)", pa.int64()),
        ("SUM(i)", pa.int64()),
        ("SUM(f)", pa.float64()),
        ("SUM(m)", pa.decimal128(38, 2)),
        ("AVG(m)", pa.float64()),
        ("MEDIAN(k)", pa.float64()),
        ("MIN(s)", pa.string()),
        ("MAX(d)", pa.date32()),
        ("MIN(code)", pa.string()),
    ],
)
def test_types_of_aggregates(call: str, type: pa.DataType) -> None:
    query = parsed(f"SELECT {call} AS x FROM A [ROWS 9] EVERY 1 SECOND")
    assert query.outputs[0].expression.type == type


def test_except_on() -> None:
    query = parsed(
        "SELECT *, _ts FROM A [RANGE 9 SECONDS] a EXCEPT ON (k, D) B [RANGE 2 SECONDS] EXCEPT ON (m) C c [ROWS 4]"
        " WHERE a.v > 1 AND c.o"
    )
    assert query.on_top == Difference("a", ("B", "c"))
    assert [s.window for s in query.sources] == [
        Window("range", 9 * SECOND),
        Window("range", 2 * SECOND),
        Window("rows", 4),
    ]
    assert [t for _, t in predicates(query)] == ["eq(a.k, B.k)", "eq(a.d, B.d)", "eq(a.m, c.m)"]
    assert selections(query) == [("a", "gt(a.v, 1.0::double)"), ("c", "c.o")]
    assert {alias for o in query.outputs for alias in o.expression.aliases()} == {"a", ""}


def test_except_on_with_one_window_for_all_and_casts() -> None:
    query = parsed('SELECT k FROM A EXCEPT ON (K) "Odd Name" AS o WINDOW 4 MINUTES')
    assert [s.window for s in query.sources] == [Window("range", 240 * SECOND)] * 2
    assert [t for _, t in predicates(query)] == ["eq(A.k, o.K)"]


def test_words_of_cql_may_also_be_names() -> None:
    query = parsed("SELECT A.k AS every, A.v AS range FROM A [ROWS 2], B [ROWS 2] rows WHERE A.k = rows.k")
    assert [o.name for o in query.outputs] == ["every", "range"]
    assert query.on_top is None


def test_a_long_conjunction() -> None:
    text = " AND ".join(f"k <> {n}" for n in range(1500))
    assert len(parsed(f"SELECT k FROM A WHERE {text}").selections) == 1500


def test_parsing_is_deterministic() -> None:
    text = "SELECT A.k, COUNT(*) FROM A [ROWS 2], B [ROWS 2] WHERE A.k = B.k AND A.v < B.v GROUP BY 1 EVERY 1 SECOND"
    assert parsed(text) == parsed(text)
    assert isinstance(parsed(text).on_top, Aggregate)


def test_using_reads_what_a_subquery_shows() -> None:
    sides = "(SELECT k AS j FROM A) AS x [RANGE 1 SECONDS] JOIN (SELECT k AS j FROM B) AS y [RANGE 1 SECONDS]"
    query = parsed(f"SELECT x.j FROM {sides} USING (j)")
    assert [p.expression.text() for p in query.predicates] == ["eq(x.k, y.k)"]
    with pytest.raises(LanguageError, match="'k', which"):
        parsed(f"SELECT x.j FROM {sides} USING (k)")


def test_a_statement_is_bound_once_for_as_long_as_its_streams_stay_as_they_are() -> None:
    statement = Statement.of("SELECT A.k, B.v FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS")
    found = parse_query(statement, STREAMS)
    assert parse_query(statement, dict(STREAMS)) is found
    fields = [field.with_type(pa.int32()) if field.name == "v" else field for field in STREAMS["B"].columns]
    other = {**STREAMS, "B": replace(STREAMS["B"], columns=pa.schema(fields))}
    assert parse_query(statement, other).outputs[1].expression.type == pa.int32()
    assert parse_query(statement, STREAMS) == found
