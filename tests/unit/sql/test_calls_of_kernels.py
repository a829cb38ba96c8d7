"""Arithmetic makes no Python call for a row, and products of whole numbers are exact however large they are."""

from __future__ import annotations

import cProfile
import decimal
from collections.abc import Callable
from decimal import Decimal
from operator import eq, ge, gt, le, lt, ne

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from midstream.expr.evaluate import Columns, evaluate, evaluate_checked, holds, is_whole
from midstream.expr.expression import Column, Expression
from midstream.expr.kernels import text as letters
from midstream.model.schema import StreamSchema
from midstream.sql.parse import parse_query

SCHEMA = pa.schema({"a": pa.int64(), "b": pa.int64(), "i": pa.int32(), "e": pa.decimal128(9, 2)})
A = StreamSchema("A", pa.schema([*SCHEMA, pa.field("ts", pa.timestamp("us"))]), "ts")
DISTANCE = "(a - b) * (a - b)"


def rows(number: int) -> pa.Table:
    values = range(1, number + 1)
    dear = pa.array([Decimal(n % 100) for n in values]).cast(SCHEMA.field("e").type)
    return pa.table([[3 * n for n in values], list(values), [n % 1_000 for n in values], dear], schema=SCHEMA)


def bound(text: str) -> Expression:
    return parse_query(f"SELECT {text} AS x FROM A", {"A": A}).outputs[0].expression


def reader(table: pa.Table) -> Columns:
    return lambda column: table[column.name].combine_chunks()


def value(text: str, table: pa.Table) -> pa.Array:
    return evaluate(bound(text), reader(table), table.num_rows)


def calls(text: str, table: pa.Table) -> int:
    value(text, table)
    profile = cProfile.Profile()
    profile.enable()
    value(text, table)
    profile.disable()
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize(
    "text",
    [
        DISTANCE,
        f"{DISTANCE} + (a + b) * (a + b)",
        f"{DISTANCE} * (a - b)",
        f"{DISTANCE} % 7",
        f"{DISTANCE} // 7",
        f"-{DISTANCE}",
        "i * a * b",
        "e * e * e",
        "e * (a - b)",
        "e + a",
        "abs(a - b) * e",
        "e % 7",
        "a % (e + 1)",
        "to_timestamp(a)",
        "make_date(i, 1, 1)",
        "lpad(CAST(a AS VARCHAR), 7, 'xy')",
        "split_part(CAST(a AS VARCHAR), '1', 2)",
        f"{DISTANCE} < 100",
        f"{DISTANCE} BETWEEN a AND 1000",
    ],
)
def test_arithmetic_makes_no_call_for_a_row(text: str) -> None:
    assert calls(text, rows(2_000)) < 1.5 * calls(text, rows(20))


LARGE, SMALL = st.integers(-(2**63), 2**63 - 1), st.integers(-100, 100)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(pairs=st.lists(st.tuples(LARGE, LARGE), min_size=1, max_size=4))
@pytest.mark.parametrize("power", [2, 3])
def test_products_are_exact_or_null(power: int, pairs: list[tuple[int, int]]) -> None:
    table = pa.table({"a": [a for a, _ in pairs], "b": [b for _, b in pairs]})
    found = value(" * ".join(["(a - b)"] * power), table).to_pylist()
    exact = [(a - b) ** power for a, b in pairs]
    assert found == [number if abs(number) < 10**38 else None for number in exact]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(pairs=st.lists(st.tuples(st.none() | LARGE | SMALL, LARGE | SMALL), min_size=1, max_size=4), edge=LARGE | SMALL)
@pytest.mark.parametrize("operator", ["<", "<=", "=", "<>", ">", ">="])
def test_what_is_reckoned_in_64_bits_is_exact(operator: str, pairs: list[tuple[int | None, int]], edge: int) -> None:
    table = pa.table({"a": pa.array([a for a, _ in pairs], pa.int64()), "b": [b for _, b in pairs]})
    compare = {"<": lt, "<=": le, "=": eq, "<>": ne, ">": gt, ">=": ge}[operator]
    numbers = [None if a is None else abs(a - b) * (a + b) - b for a, b in pairs]
    exact = [None if number is None else compare(number, edge) for number in numbers]
    condition = f"abs(a - b) * (a + b) - b {operator} {edge}"
    assert value(condition, table).to_pylist() == exact
    assert holds(bound(condition), reader(table), len(pairs)).tolist() == [bool(one) for one in exact]
    checked, failed = evaluate_checked(bound(condition), reader(table), len(pairs))
    assert checked.to_pylist() == exact and failed is None


AMONG: dict[str, Callable[[int, int, int], bool | None]] = {
    "BETWEEN {} AND {}": lambda n, one, other: one <= n <= other,
    "NOT BETWEEN {} AND {}": lambda n, one, other: not one <= n <= other,
    "BETWEEN {} AND NULL": lambda n, one, other: None if one <= n else False,
    "IN ({}, {})": lambda n, one, other: n in (one, other),
    "IN ({}, 1, 2, 3, 4, {})": lambda n, one, other: n in (one, 1, 2, 3, 4, other),
    "IN ({}, {}, 5, 6, 7, NULL)": lambda n, one, other: n in (one, other, 5, 6, 7) or None,
}


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    pairs=st.lists(st.tuples(st.none() | LARGE | SMALL, LARGE | SMALL), min_size=1, max_size=4),
    one=LARGE | SMALL,
    other=LARGE | SMALL,
)
@pytest.mark.parametrize("text", AMONG)
def test_what_lies_among_others_in_64_bits_is_exact(
    text: str, pairs: list[tuple[int | None, int]], one: int, other: int
) -> None:
    table = pa.table({"a": pa.array([a for a, _ in pairs], pa.int64()), "b": [b for _, b in pairs]})
    numbers = [None if a is None else (a - b) * (a + b) - b for a, b in pairs]
    exact = [None if number is None else AMONG[text](number, one, other) for number in numbers]
    condition = bound(f"(a - b) * (a + b) - b {text.format(one, other)}")
    read = reader(table)
    assert any(map(is_whole, condition.walk()))
    assert evaluate(condition, read, len(pairs)).to_pylist() == exact
    assert holds(condition, read, len(pairs)).tolist() == [bool(one) for one in exact]
    checked, failed = evaluate_checked(condition, read, len(pairs))
    assert checked.to_pylist() == exact and failed is None


def test_a_value_that_fits_nowhere_fails_alone() -> None:
    table = pa.table({"a": [2**62, 3, None], "b": [-(2**62), 1, 1]})
    cube = bound(f"{DISTANCE} * {DISTANCE} < 100")
    found, failed = evaluate_checked(cube, reader(table), 3)
    assert failed is not None and failed.tolist() == [True, False, False]
    assert found.to_pylist()[1:] == [True, None]


TEXT = st.none() | st.text("aäb😀,", max_size=6)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(texts=st.lists(TEXT, min_size=1, max_size=5), width=st.integers(-2, 8), fill=st.text("äx", max_size=3))
@pytest.mark.parametrize("at_front", [True, False])
def test_texts_are_padded_at_once_as_one_by_one(at_front: bool, texts: list[str], width: int, fill: str) -> None:
    kernel = letters.padded(at_front=at_front)
    whole = pa.array([None, *texts], pa.string()).slice(1)
    together = kernel(pa.string(), whole, pa.scalar(width), pa.scalar(fill))
    one_by_one = kernel(pa.string(), whole, pa.array([width] * len(texts)), pa.array([fill] * len(texts)))
    assert together.to_pylist() == one_by_one.to_pylist()


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    texts=st.lists(TEXT, min_size=1, max_size=5),
    separator=st.sampled_from(["", ",", "a", "aa", "ä", "b,"]),
    number=st.integers(-4, 4) | st.sampled_from([2**31 - 1, 2**31, -(2**31), 2**63 - 1, -(2**63)]),
)
def test_texts_are_split_at_once_as_one_by_one(texts: list[str], separator: str, number: int) -> None:
    whole = pa.array([None, *texts], pa.string()).slice(1)
    together = letters.split_part(pa.string(), whole, pa.scalar(separator), pa.scalar(number))
    apart = pa.array([separator] * len(texts)), pa.array([number] * len(texts))
    assert together.to_pylist() == letters.split_part(pa.string(), whole, *apart).to_pylist()


MONEY = st.decimals(-1000, 1000, places=2)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(pairs=st.lists(st.tuples(st.none() | MONEY, MONEY | st.none()), min_size=1, max_size=4), divisor=MONEY)
def test_remainders_of_decimals_are_exact(pairs: list[tuple[Decimal | None, Decimal | None]], divisor: Decimal) -> None:
    type = pa.decimal128(9, 2)
    columns = {"e": pa.array([e for e, _ in pairs], type), "a": [n for n, _ in enumerate(pairs)]}
    table = pa.table(columns)
    assume(divisor)
    exact = [None if e is None else e % divisor for e, _ in pairs]
    assert value(f"e % {divisor}", table).to_pylist() == exact
    assert value("a % (e * e)", table).to_pylist() == [
        None if e is None or not e else Decimal(n) % (e * e) for n, (e, _) in enumerate(pairs)
    ]


def test_what_has_too_many_digits_is_read_once_for_each_time_it_is_written() -> None:
    table, reads = pa.table({"a": [2**62, 5], "b": [2**61, 7]}), []

    def column(asked: Column) -> pa.Array:
        reads.append(asked)
        return table[asked.name].combine_chunks()

    text = "(a * b)"
    for _ in range(8):
        text = f"({text} % 2305843009213693951 * b)"
    evaluate(bound(text), column, 2)
    assert len(reads) <= 2 * 10


def test_numbers_of_all_their_digits() -> None:
    most, small = Decimal("9999999999999999999999999999.9999999999"), decimal.Context(prec=6)
    table = pa.table(
        {"f": pa.array([most, None], pa.decimal128(38, 10)), "w": pa.array([10**45, 3], pa.decimal256(50))}
    )
    streams = {"A": StreamSchema("A", pa.schema([*table.schema, pa.field("ts", pa.timestamp("us"))]), "ts")}

    def found(text: str) -> list[object]:
        expression = parse_query(f"SELECT {text} AS x FROM A", streams).outputs[0].expression
        return list(evaluate(expression, lambda c: table[c.name].combine_chunks(), 2).to_pylist())

    assert found("1 * f") == [most, None] and found("f * 1 < 5") == [False, None]
    assert found("w + 1") == [None, 4] and found("-w") == [-(10**45), -3] and found("abs(w)") == [10**45, 3]
    money = pa.table({"e": pa.array([Decimal("1234567.89")], pa.decimal128(9, 2))})
    with decimal.localcontext(small):
        assert value("e % 1234.5678", money).to_pylist() == [Decimal("0.0900")]
