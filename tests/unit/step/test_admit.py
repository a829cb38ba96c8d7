"""Admission: every row is admitted, late or a dead letter; none is lost, none is changed but to its declared type."""

from __future__ import annotations

import datetime
import itertools
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.admission.admit import Admitted, admit
from midstream.model.errors import InputError
from midstream.model.schema import StreamSchema
from midstream.sinks.formats import written
from midstream.sql.ddl import parse_ddl

DAY = 86_400_000_000


def stream(ddl: str = "k BIGINT, ts TIMESTAMP") -> StreamSchema:
    return StreamSchema("A", parse_ddl(ddl), "ts")


def times(*microseconds: int | None) -> pa.Array:
    return pa.array(microseconds, pa.int64()).cast(pa.timestamp("us"))


def reasons(admitted: Admitted) -> list[str]:
    return list(admitted.dead.column("_reason").to_pylist())


def test_rows_of_the_declared_types_are_taken_as_they_are() -> None:
    found = admit(stream(), pa.table({"ts": times(5, 6), "other": [0, 0], "k": [1, None]}))
    assert found.rows.to_pydict() == {
        "k": [1, None],
        "ts": [datetime.datetime(1970, 1, 1, 0, 0, 0, 5), datetime.datetime(1970, 1, 1, 0, 0, 0, 6)],
        "_ts": [5, 6],
    }
    assert found.late.num_rows == found.dead.num_rows == 0


def test_a_row_at_the_watermark_is_in_time_and_one_before_it_late() -> None:
    found = admit(stream(), pa.table({"k": [1, 2, 3], "ts": times(99, 100, 101)}), 100)
    assert found.rows.column("k").to_pylist() == [2, 3]
    assert found.late.column_names == ["k", "ts", "_watermark"]
    assert found.late.column("k").to_pylist() == [1]
    assert found.late.column("_watermark").cast(pa.int64()).to_pylist() == [100]


def test_a_row_without_a_time_is_a_dead_letter() -> None:
    found = admit(stream(), pa.table({"k": [1, 2], "ts": times(None, 7)}))
    assert found.rows.column("k").to_pylist() == [2]
    assert found.dead.column("k").to_pylist() == [1]
    assert reasons(found) == ["timestamp column 'ts' is NULL"]


def test_texts_are_read_and_what_cannot_be_read_is_named() -> None:
    given = pa.table({"k": ["1", "x", None, "4.5", "5"], "ts": times(1, 2, 3, 4, 5), "more": list("abcde")})
    found = admit(stream(), given)
    assert found.rows.column("k").to_pylist() == [1, None, 5]
    assert found.dead.drop_columns("_reason").to_pydict() == given.take([1, 3]).to_pydict(), "in its original form"
    assert reasons(found) == [
        "column 'k': cannot read 'x' as int64",
        "column 'k': cannot read '4.5' as int64",
    ]


@pytest.mark.parametrize(
    ("ddl", "given", "read", "dead"),
    [
        ("k INT", pa.array([1, 2**40]), [1], 1),
        ("k BIGINT", pa.array([1.0, 1.5, float("nan")]), [1], 2),
        ("k BIGINT", pa.array(["1.0", "-2.", "1.5E1", "9.2e18"]), [1, -2, 15, 92 * 10**17], 0),
        ("k BIGINT", pa.array(["1.5", "1e-2", "1e19", "1e999", ".", "e1", "0x1.0"]), [], 7),
        ("k TINYINT", pa.array(["127.0", "128.0", "-128.0", "-129.0"]), [127, -128], 2),
        ("k UBIGINT", pa.array(["18446744073709551615.0", "18446744073709551616.0", "-1.0"]), [2**64 - 1], 2),
        ("k DOUBLE", pa.array([1, 2]), [1.0, 2.0], 0),
        ("k DECIMAL(4, 2)", pa.array([Decimal("1.25"), Decimal("100.00")]), [Decimal("1.25")], 1),
        ("k DATE", pa.array(["2024-02-29", "2023-02-29"]), [datetime.date(2024, 2, 29)], 1),
        ("k VARCHAR", pa.array(["a", "b"]).dictionary_encode(), ["a", "b"], 0),
        ("k VARCHAR", pa.array(["a", "b"], pa.string_view()), ["a", "b"], 0),
        ("k BIGINT", pa.RunEndEncodedArray.from_arrays([2], [5]), [5, 5], 0),
        ("k VARCHAR", pa.RunEndEncodedArray.from_arrays([1, 2], [5, None]), ["5", None], 0),
        ("k BIGINT", pa.nulls(2), [None, None], 0),
        ("k BIGINT", pa.array([{"x": 1}, {"x": 2}]), [], 2),
        ("k BOOLEAN", pa.array(["true", "maybe"]), [True], 1),
    ],
)
def test_columns_are_brought_to_their_types(ddl: str, given: pa.Array, read: list[Any], dead: int) -> None:
    arrived = times(*range(1, len(given) + 1))
    found = admit(stream(f"{ddl}, ts TIMESTAMP"), pa.table({"k": given, "ts": arrived}))
    assert found.rows.column("k").to_pylist() == read
    assert found.rows.schema.field("k").type == parse_ddl(ddl).field("k").type
    assert found.dead.num_rows == dead


@pytest.mark.parametrize(
    ("column", "microseconds"),
    [
        (pa.array([3], pa.int64()), 3),
        (pa.array([3], pa.int32()), 3),
        (pa.array([3], pa.timestamp("s")), 3_000_000),
        (pa.array([3_999], pa.timestamp("ns")), 3),
        (pa.array([3], pa.timestamp("us", "Asia/Tokyo")), 3),
        (pa.array([datetime.date(1970, 1, 2)]), DAY),
        (pa.array(["1970-01-02 00:00:00.5"]), DAY + 500_000),
        (pa.array(["1970-01-02"]), DAY),
    ],
)
def test_every_type_of_time_counts_in_microseconds(column: pa.Array, microseconds: int) -> None:
    schema = StreamSchema("A", pa.schema([("ts", column.type)]), "ts")
    found = admit(schema, pa.table({"ts": column}))
    assert found.rows.column("_ts").to_pylist() == [microseconds]
    assert found.rows.column("ts").equals(column), "the payload stays as it came"


def test_times_that_cannot_be_read_are_dead_letters() -> None:
    schema = StreamSchema("A", pa.schema([("ts", pa.string())]), "ts")
    found = admit(schema, pa.table({"ts": ["1970-01-01 00:00:01", "soon", None]}))
    assert found.rows.column("_ts").to_pylist() == [1_000_000]
    assert reasons(found) == ["column 'ts': cannot read 'soon' as timestamp[us]", "timestamp column 'ts' is NULL"]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["1", "-7", "x", "", "2.5", None]), st.one_of(st.none(), st.integers(0, 9)))),
    st.integers(0, 9),
    st.lists(st.integers(0, 20), max_size=3),
)
def test_no_row_is_lost(rows: list[tuple[str | None, int | None]], watermark: int, cuts: list[int]) -> None:
    """Each row is in one of the three, in order, however the table is chunked."""
    whole = pa.table({"k": pa.array([r[0] for r in rows], pa.string()), "ts": times(*(r[1] for r in rows))})
    edges = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    given = pa.concat_tables([whole.slice(a, b - a) for a, b in itertools.pairwise(edges)])
    found = admit(stream(), given, watermark)
    readable = [r for r in rows if r[0] in ("1", "-7", None) and r[1] is not None]
    values = [None if r[0] is None else int(r[0]) for r in readable]
    in_time = [r[1] is not None and r[1] >= watermark for r in readable]
    assert found.rows.column("k").to_pylist() == [v for v, kept in zip(values, in_time, strict=True) if kept]
    assert found.late.column("k").to_pylist() == [v for v, kept in zip(values, in_time, strict=True) if not kept]
    assert found.dead.column("k").to_pylist() == [r[0] for r in rows if r not in readable]


def test_a_missing_or_doubled_column_is_an_error_of_the_table() -> None:
    with pytest.raises(
        InputError, match=r"lacks 'k', 'ts' \(at stream A\)\. Remedy: push tables with the columns k, ts"
    ):
        admit(stream(), pa.table({"x": [1]}))
    doubled = pa.Table.from_arrays([pa.array([1]), pa.array([2]), times(1)], names=["k", "k", "ts"])
    with pytest.raises(InputError, match="'k' more than once"):
        admit(stream(), doubled)


def test_an_empty_table_is_nothing() -> None:
    found = admit(stream(), stream().columns.empty_table(), 10**9)
    assert found.rows.num_rows == found.late.num_rows == found.dead.num_rows == 0
    assert found.rows.schema.names == ["k", "ts", "_ts"]


@pytest.mark.parametrize(
    ("ddl", "given"),
    [
        ("x BIGINT[]", pa.array([[1.0], [1.5], None])),
        ("x BIGINT[]", pa.array([["1"], ["x"], None])),
        ("x STRUCT(a BIGINT[])", pa.array([{"a": [1.0]}, {"a": [1.5]}, None])),
        ("x MAP(VARCHAR, BIGINT)", pa.array([[("k", "1")], [("k", "x")], None], pa.map_(pa.string(), pa.string()))),
    ],
)
def test_nested_values_are_judged_row_by_row(ddl: str, given: pa.Array) -> None:
    schema = stream(f"{ddl}, ts TIMESTAMP")
    found = admit(schema, pa.table({"x": given, "ts": times(1, 2, 3)}))
    assert found.rows.column("_ts").to_pylist() == [1, 3] and found.dead.num_rows == 1
    alone = admit(schema, pa.table({"x": given.take([0]), "ts": times(1)}))
    assert found.rows.column("x")[0] == alone.rows.column("x")[0]


def test_what_lies_below_a_null_is_not_judged() -> None:
    hidden = pa.StructArray.from_arrays([pa.array([1.0, 1.5])], ["a"], mask=pa.array([False, True]))
    found = admit(stream("x STRUCT(a BIGINT), ts TIMESTAMP"), pa.table({"x": hidden, "ts": times(1, 2)}))
    assert found.rows.column("x").to_pylist() == [{"a": 1}, None] and not found.dead.num_rows


def words(kind: pa.DataType, *found: int) -> pa.Array:
    """Values of a type as they are stored."""
    width = pa.int32() if kind.bit_width == 32 else pa.int64()
    return pa.array(found, width).view(kind)


DAMAGED = pa.Array.from_buffers(pa.string(), 2, pa.array([b"\xed\xa0\x80", b"1970-01-01"]).buffers())
FAR = words(pa.timestamp("s"), 2**62, 0)


@pytest.mark.parametrize("role", ["x", "ts"])
@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("TIMESTAMP", words(pa.date32(), 2**31 - 1, 0)),
        ("DATE", words(pa.date64(), 2**62, 0)),
        ("TIMESTAMP", FAR),
        ("TIMESTAMP", words(pa.timestamp("ms"), -(2**62), 0)),
        ("TIMESTAMP_NS", words(pa.timestamp("us"), 568_971_820_800_000_000, 0)),
        ("TIMESTAMP", words(pa.timestamp("s", "Nowhere/X"), 2**62, 0)),
        ("TIMESTAMP", pa.DictionaryArray.from_arrays([0, 1], FAR)),
        ("TIMESTAMP", DAMAGED),
        ("TIMESTAMP", pa.RunEndEncodedArray.from_arrays([1, 2], pa.array(["soon", "1970-01-01"]))),
    ],
)
def test_values_that_python_or_arrow_has_not_are_dead_letters(role: str, kind: str, given: pa.Array) -> None:
    schema = stream(f"x {kind}, ts TIMESTAMP" if role == "x" else f"x BIGINT, ts {kind}")
    other = words(pa.timestamp("us"), 0, 0) if role == "x" else pa.array([1, 1])
    found = admit(schema, pa.table({role: given, "ts" if role == "x" else "x": other}))
    assert found.rows.column("_ts").to_pylist() == [0] and len(reasons(found)) == 1
    assert len(found.dead.to_pylist()) == 1, "a dead letter has values that Python has"


@pytest.mark.parametrize(
    ("ddl", "given"),
    [
        ("x DOUBLE", words(pa.timestamp("us"), 2**62)),
        ("x BIGINT", DAMAGED.slice(0, 1)),
        ("x TIME", pa.array([-1])),
        ("x TIME", words(pa.time32("s"), 86_400)),
        ("x VARCHAR[]", pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64()))),
        ("x DATE", words(pa.duration("s"), 2**62)),
        ("x BIGINT", pa.StructArray.from_arrays([FAR.slice(0, 1)], ["x"])),
        ("x BIGINT", pa.array([pa.MonthDayNano([1, 2, 3])])),
        ("x BIGINT", pa.array([{}], pa.struct([]))),
        ("x TINYINT", pa.array([Decimal("1e30")], pa.decimal128(38, -2))),
    ],
)
def test_a_dead_letter_can_be_written_whatever_it_is(ddl: str, given: pa.Array) -> None:
    found = admit(stream(f"{ddl}, ts TIMESTAMP"), pa.table({"x": given, "ts": times(1)}))
    assert len(found.dead.to_pylist()) == 1
    written(found.dead, "parquet")
    written(found.dead, "json")


def test_texts_of_a_dictionary_are_read_as_texts_are() -> None:
    given = pa.array(["1970-01-01T01:00:00+01:00", "19700101", "soon"]).dictionary_encode()
    found = admit(stream("ts TIMESTAMP"), pa.table({"ts": given}))
    assert found.rows.column("_ts").to_pylist() == [0, 0] and found.dead.num_rows == 1


def test_columns_encoded_as_runs_are_written_out() -> None:
    """In rows, in late rows and dead letters, and where the stream is declared so."""
    runs = pa.chunked_array([pa.RunEndEncodedArray.from_arrays([2, 3], [5, None])])
    schema = StreamSchema("A", pa.schema([("k", runs.type), ("ts", pa.timestamp("us"))]), "ts")
    assert schema.columns.field("k").type == pa.int64()
    found = admit(schema, pa.table({"k": runs, "ts": pa.array([9, None, 1], pa.timestamp("us"))}), 5)
    assert [part["k"].to_pylist() for part in (found.rows, found.dead, found.late)] == [[5], [5], [None]]


@pytest.mark.parametrize("watermark", [-(2**63), -(2**62), 0])
@pytest.mark.parametrize("far", [2**63 - 1, 2**62, -(2**62), -(2**63)])
def test_a_time_that_no_window_can_be_added_to_is_a_dead_letter(far: int, watermark: int) -> None:
    """It moves no watermark: DuckDB's and PostgreSQL's TIMESTAMP 'infinity' are such times."""
    found = admit(stream(), pa.table({"k": ["1", "2", "x"], "ts": times(far, 5, far)}), watermark)
    assert found.rows.to_pylist() == [{"k": 2, "ts": datetime.datetime(1970, 1, 1, 0, 0, 0, 5), "_ts": 5}]
    assert (found.seen.greatest, found.seen.rows, found.seen.late, found.seen.rejected) == (5, 1, 0, 2)
    beyond = f"timestamp column 'ts': {far} us are beyond all event times"
    assert reasons(found) == [beyond, "column 'k': cannot read 'x' as int64"]


def test_the_farthest_times_enter() -> None:
    found = admit(stream(), pa.table({"k": [1, 2], "ts": times(2**62 - 1, 1 - 2**62)}))
    assert found.rows.num_rows == 2 and not found.dead.num_rows


def test_tables_of_a_stream_may_differ_from_one_to_the_next() -> None:
    one, found = stream(), []
    zoned = pa.array([7], pa.timestamp("us", "UTC"))
    for _ in range(2):
        found += [
            admit(one, pa.table({"k": [1], "ts": times(7)})),
            admit(one, pa.table({"ts": zoned, "k": ["1"]})),
            admit(one, pa.table({"other": [0], "k": pa.array([1], pa.int8()), "ts": ["1970-01-01T00:00:00.000007"]})),
        ]
        with pytest.raises(InputError, match="lacks 'ts'"):
            admit(one, pa.table({"k": [1]}))
    assert all(each.rows.equals(found[0].rows) and each.seen == found[0].seen for each in found)
