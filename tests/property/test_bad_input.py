"""Rows that break joins elsewhere, one by one: right answers, nothing lost. The oracle is held to them too."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.oracle.arrival import Lifetime
from tests.oracle.compare import rows
from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec, StreamSpec, Subtrahend
from tests.property.drive import Case, Migrate, check
from tests.property.keyed import BEGIN, US, hold, keyed, pair, stream


def test_nan_and_null_keys() -> None:
    """NULL joins nothing, NaN joins NaN, 0.0 joins -0.0."""
    a, b = stream("A", pa.float64()), stream("B", pa.float64())
    tables = {"A": keyed(a, [math.nan, None, 0.0, 1.0]), "B": keyed(b, [math.nan, None, -0.0, -math.nan, math.inf])}
    hold([a, b], [tables], pair("A", "B"), 3)
    hold([a, b], [{"A": tables["A"]}, {"B": tables["B"]}], pair("A", "B"), 3)
    hold([a, b], [{"B": tables["B"]}, {"A": tables["A"]}], pair("A", "B"), 3)


def test_null_strings_are_not_empty_strings() -> None:
    a, b = stream("A", pa.string()), stream("B", pa.string())
    hold([a, b], [{"A": keyed(a, ["", None, "a"]), "B": keyed(b, ["", None, None])}], pair("A", "B"), 1)


def test_duplicate_rows_all_count() -> None:
    a, b = stream("A", pa.int64()), stream("B", pa.int64())
    spec = QuerySpec((SourceSpec("A", "A"), SourceSpec("B", "B")), (Item("A.k"),), pair("A", "B").where, window=SECOND)
    step = {"A": keyed(a, [7, 7, 7]), "B": keyed(b, [7, 7])}
    hold([a, b], [step], spec, 6)
    hold([a, b], [step, step], spec, 24)


@pytest.mark.parametrize("window", [0, 1])
def test_equal_timestamps(window: int) -> None:
    """Also in a window of no length, and one microsecond apart."""
    a, b = stream("A", pa.int64()), stream("B", pa.int64())
    apart = {"A": keyed(a, [1, 1, 1], [0, 0, 0.000001]), "B": keyed(b, [1, 1], [0, 0.000001])}
    hold([a, b], [apart], pair("A", "B", window=window), 3 if window == 0 else 6)
    hold(
        [a, b], [{"A": apart["A"]}, {"B": apart["B"].slice(1)}], pair("A", "B", window=window), 1 if window == 0 else 3
    )


def test_a_row_of_age_exactly_the_window_still_counts() -> None:
    a, b = stream("A", pa.int64()), stream("B", pa.int64())
    steps = [{"A": keyed(a, [1, 1], [0, 0.000001])}, {"B": keyed(b, [1], [10.000001])}]
    hold([a, b], steps, pair("A", "B"), 1)
    hold([a, b], [{"B": keyed(b, [1], [0])}, {"A": keyed(a, [1, 1], [10, 10.000001])}], pair("A", "B"), 1)


def test_empty_steps() -> None:
    """Steps and tables without rows, before, between and after the others."""
    a, b = stream("A", pa.int64()), stream("B", pa.int64())
    nothing = a.schema.empty_table()
    steps = [
        {}, {"A": nothing, "B": nothing}, {"A": keyed(a, [1])}, {},
        {"A": nothing}, {"B": keyed(b, [1]), "A": nothing}, {},
    ]  # fmt: skip
    found = hold([a, b], steps, pair("A", "B"), 1)
    assert [t.num_rows for t in found.outputs["q"]] == [0, 0, 0, 0, 0, 1, 0]
    assert {t.schema for t in found.outputs["q"]} == {found.outputs["q"][0].schema}


def test_only_empty_steps() -> None:
    a, b = stream("A", pa.int64()), stream("B", pa.int64())
    found = hold([a, b], [{}, {}], pair("A", "B"), 0)
    assert found.engine.metrics()["state_rows"] == 0


def test_a_stream_that_never_speaks_holds_everything_back() -> None:
    """It may still speak of any time: nothing is purged, no instant is over."""
    streams = [stream(name, pa.int64()) for name in "ABC"]
    steps = [
        {n: keyed(s, [1, 1], [t * 100, t * 100 + 1]) for n, s in zip("AB", streams, strict=False)} for t in range(5)
    ]
    found = hold(streams, steps, pair("A", "B", "C"), 0)
    assert found.engine.metrics()["state_rows"] >= 20
    last = {"C": keyed(streams[2], [1], [1])}
    hold(streams, [*steps, last], pair("A", "B", "C"), 4)


def test_a_stream_that_never_speaks_is_left_out_after_its_timeout() -> None:
    a, b = stream("A", pa.int64()), stream("B", pa.int64(), idle_timeout=50 * SECOND)
    steps = [{"A": keyed(a, [1, 2], [t * 20, t * 20 + 1])} for t in range(8)]
    left = QuerySpec(
        (SourceSpec("A", "A", range=5 * SECOND),), (Item("A.k"), Item("_ts")),
        subtracted=(Subtrahend(SourceSpec("B", "B", range=5 * SECOND), ("k",)),),
    )  # fmt: skip
    hold([a, b], steps, left, 29)
    found = hold([a, b], steps, pair("A", "B"), 0)
    assert found.engine.metrics()["state_rows"] < 10
    late = {"B": keyed(b, [1, 1], [130, 141])}
    found = hold([a, b], [*steps, late], pair("A", "B"), 1)
    assert found.engine.late["B"]["u"].to_pylist() == [0]


def test_a_stream_hours_ahead_of_another() -> None:
    """Everything of B comes before anything of A; each is in order in itself, so that nothing is late."""
    a, b = stream("A", pa.int64()), stream("B", pa.int64())
    hours = [3600.0 * t for t in range(12)]
    ahead = [{"B": keyed(b, [1, 2, 3], [t, t + 1, t + 2])} for t in hours]
    behind = [{"A": keyed(a, [1, 3], [t, t + 11])} for t in hours]
    hold([a, b], [*ahead, *behind], pair("A", "B"), 24)
    ahead_then_together = [x for steps in zip(ahead[6:], behind, strict=False) for x in steps]
    hold([a, b], [*ahead[:6], *ahead_then_together, *behind[6:]], pair("A", "B"), 24)


def test_hours_ahead_in_an_aggregate_and_a_difference() -> None:
    a, b = stream("A", pa.int64()), stream("B", pa.int64())
    minutes = [60.0 * t for t in range(60)]
    steps = [{"B": keyed(b, [1], [t])} for t in minutes] + [{"A": keyed(a, [1, 2], [t, t + 1])} for t in minutes]
    sources = (SourceSpec("A", "A"), SourceSpec("B", "B"))
    counted = QuerySpec(
        sources, (Item("COUNT(*)", "n"), Item("_ts")), pair("A", "B").where, every=5 * SECOND, window=10 * SECOND
    )  # fmt: skip
    hold([a, b], steps, counted, 59 * 3)
    left = QuerySpec(
        sources[:1], (Item("A.k"), Item("_ts")), subtracted=(Subtrahend(sources[1], ("k",)),), window=10 * SECOND
    )
    hold([a, b], steps, left, 59 * 2 + 58 * 0)


def test_a_hundred_thousand_rows_on_one_key() -> None:
    """In five steps, with a change of plan amid them."""
    streams = [stream(name, pa.int64()) for name in "ABC"]
    steps = []
    for number in range(5):
        times = [number * 20 + t / 1000 for t in range(20_000)]
        few = [number * 20 + t + 0.0005 for t in range(20)]
        steps.append({
            "A": keyed(streams[0], [42] * 20_000, times), "B": keyed(streams[1], [42] * 20, few),
            "C": keyed(streams[2], [42] * 20, few),
        })  # fmt: skip
    move = Migrate(3, "q", "(A (B C))", "moving_state")
    hold(
        streams,
        steps,
        pair("A", "B", "C", window=SECOND // 100),
        100 * 20 - 9,
        plans={"q": "((A B) C)"},
        actions=[move],
    )


def test_unicode_and_very_long_strings() -> None:
    """Strings are equal by code point: no folding of case, no composing of accents."""
    a, b = stream("A", pa.string()), stream("B", pa.string())
    long = "🐘" * 250_000
    keys = [
        "é",
        "e\u0301",
        "ß",
        "SS",
        "日本語",
        "a\x00b",
        "a",
        "\u200b",
        " ",
        "İ",
        long,
        long + "x",
        "'; DROP",
        '"',
        "\\",
        "%",
    ]
    hold([a, b], [{"A": keyed(a, keys)}, {"B": keyed(b, keys)}], pair("A", "B"), len(keys))
    shown = QuerySpec(
        (SourceSpec("A", "A"), SourceSpec("B", "B")), (Item("A.k", "größe"), Item("B.k")),
        (Condition("A.k = B.k", ("A", "B")), Condition("A.k LIKE '%日%' OR A.k = 'ß'", ("A",))), window=SECOND,
    )  # fmt: skip
    hold([a, b], [{"A": keyed(a, keys)}, {"B": keyed(b, keys)}], shown, 2)


KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "decimal": (pa.decimal128(38, 10), [Decimal("0.0000000001"), Decimal(10) ** 27, Decimal("-1.5"), None]),
    "small decimal": (pa.decimal128(5, 2), [Decimal("999.99"), Decimal("-999.99"), Decimal("0.01"), None]),
    "date": (pa.date32(), [date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31), None]),
    "binary": (pa.binary(), [b"", b"\x00", b"\x00\x00", b"\xff\xfe", b"abc" * 10_000, None]),
    "large string": (pa.large_string(), ["a", "", "é", None]),
    "timestamp": (
        pa.timestamp("ms", "Europe/Berlin"),
        [datetime(2024, 3, 31, 1, tzinfo=UTC), datetime(1900, 1, 1, tzinfo=UTC)],
    ),
    "big int": (pa.int64(), [2**63 - 1, -(2**63), 2**53 + 1, 2**53, 0, None]),
    "tiny int": (pa.int8(), [127, -128, 0, None]),
    "unsigned": (pa.uint32(), [2**32 - 1, 0, None]),
    "bool": (pa.bool_(), [True, False, None]),
    "float32": (pa.float32(), [math.nan, 0.5, -0.0, math.inf, -math.inf, None]),
}  # fmt: skip


@pytest.mark.parametrize("name", KEYS)
def test_keys_of_every_type(name: str) -> None:
    """Each value joins itself alone; NULL joins nothing. The key is put out as it came."""
    type_, values = KEYS[name]
    a, b = stream("A", type_), stream("B", type_)
    spec = pair("A", "B")
    spec = QuerySpec(spec.sources, (*spec.select, Item("B.k", "key")), spec.where, window=spec.window)
    steps = [{"A": keyed(a, values)}, {"B": keyed(b, values)}, {"A": keyed(a, values, 1), "B": keyed(b, values, 1)}]
    found = hold([a, b], steps, spec, 4 * (len(values) - values.count(None)))
    assert found.outputs["q"][0].schema.field("key").type == type_


def test_keys_of_two_types() -> None:
    """A whole number meets a double and a decimal at their common type."""
    a, b, c = stream("A", pa.int64()), stream("B", pa.float64()), stream("C", pa.decimal128(10, 2))
    steps = [
        {"A": keyed(a, [1, 2, 0, -3, None])},
        {
            "B": keyed(b, [1.0, 2.5, -0.0, math.nan, -3.0]),
            "C": keyed(c, [Decimal("1.00"), Decimal("0"), Decimal("2.5"), None]),
        },
    ]
    hold([a, b, c], steps, pair("A", "B"), 3)
    hold([a, b, c], steps, pair("A", "C"), 2)
    hold([a, b, c], steps, pair("B", "C"), 3)
    hold([a, b, c], steps, pair("A", "B", "C"), 2)


def test_nested_and_odd_payloads() -> None:
    """They travel through joins, migrations and restarts as they are."""
    pairs = pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))])
    columns: list[tuple[str, pa.DataType, list[Any]]] = [
        ("list", pa.list_(pa.float64()), [[1.0, math.nan], [], None]),
        ("struct", pairs, [{"x": 1, "y": ["é", None]}, None, {"x": None, "y": []}]),
        ("map", pa.map_(pa.string(), pa.int64()), [[("a", 1), ("b", None)], [], None]),
        ("bytes", pa.binary(), [b"\x00\xff", b"", None]),
        ("money", pa.decimal128(38, 2), [Decimal("12345678901234567890123456789012345.67"), Decimal("-0.01"), None]),
        ("day", pa.date32(), [date(2024, 2, 29), date(1, 1, 1), None]),
        ("at", pa.timestamp("us", "UTC"), [datetime(2024, 1, 1, tzinfo=UTC), None, datetime(1960, 1, 1, tzinfo=UTC)]),
        ("word", pa.dictionary(pa.int32(), pa.string()), ["a", "b", None]),
    ]  # fmt: skip
    schema = pa.schema([("k", pa.int64()), *((name, type_) for name, type_, _ in columns), ("ts", US)])
    a, b = StreamSpec("A", schema), stream("B", pa.int64())
    table = pa.table(
        [
            pa.array([1, 2, 3]),
            *(pa.array(values, type_) for _, type_, values in columns),
            pa.array([BEGIN] * 3).cast(US),
        ],
        schema=schema,
    )
    items = (*(Item(f"A.{name}") for name, _, _ in columns), Item("B.u"))
    spec = QuerySpec((SourceSpec("A", "A"), SourceSpec("B", "B")), items, pair("A", "B").where, window=SECOND)
    steps = [{"A": table}, {"B": keyed(b, [3, 1, 2])}, {"A": table.slice(1), "B": keyed(b, [2])}]
    case = Case((a, b), tuple(steps), (Lifetime("q", spec),))
    found = check(case, {}, actions=[Migrate(1, "q", "(B A)", "moving_state")])
    shown = pa.concat_tables(found.outputs["q"])
    expected = [
        table.slice(2),
        table.slice(0, 1),
        table.slice(1, 1),
        table.slice(1, 1),
        table.slice(1),
        table.slice(1, 1),
    ]
    names = [name for name, _, _ in columns]
    assert sorted(map(str, rows(shown.select(names)))) == sorted(
        map(str, rows(pa.concat_tables(expected).select(names)))
    )
    assert shown.schema.field("money").type == pa.decimal128(38, 2)


@pytest.mark.parametrize(
    "type_",
    [
        pa.timestamp("s"),
        pa.timestamp("ms"),
        pa.timestamp("ns"),
        pa.timestamp("us", "America/New_York"),
        pa.int64(),
        pa.date32(),
    ],
    ids=str,
)
def test_event_times_of_every_type(type_: pa.DataType) -> None:
    """Also before 1970, and at night where a zone has its clocks changed."""
    schema = pa.schema([("k", pa.int64()), ("u", pa.int64()), ("ts", type_)])
    a, b = StreamSpec("A", schema), StreamSpec("B", schema)
    day = 86_400
    seconds = [-3 * day, 0, day, 1_699_164_000 // day * day, 1_710_054_000 // day * day]

    def made(more: int) -> pa.Table:
        if pa.types.is_integer(type_):
            times = pa.array([(s + more) * SECOND for s in seconds], pa.int64())
        elif pa.types.is_date(type_):
            times = pa.array([s // day for s in seconds], pa.int32()).cast(type_)
        else:
            zone = pa.timestamp("s", type_.tz)
            times = pa.array([s + more for s in seconds], pa.int64()).cast(zone).cast(type_)
        return pa.table([pa.array([1] * 5), pa.array(range(5)), times], schema=schema)

    hold([a, b], [{"A": made(0)}, {"B": made(5)}], pair("A", "B"), 5)
    hold([a, b], [{"A": made(0), "B": made(0)}], pair("A", "B", window=day * SECOND), 7)


def test_numbers_at_the_edge() -> None:
    """What does not fit BIGINT has room in a wider type: DuckDB is asked with HUGEINTs."""
    a, b = stream("A", pa.int64()), stream("B", pa.int64())
    keys = [2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1, 0, None]
    steps = [{"A": keyed(a, keys)}, {"B": keyed(b, keys)}]

    def with_condition(text: str, sql: str) -> QuerySpec:
        return QuerySpec(
            pair("A", "B").sources, pair("A", "B").select, (Condition(text, ("A", "B"), sql),), window=SECOND
        )

    near = with_condition("A.k BETWEEN B.k - 1 AND B.k + 1", "A.k BETWEEN B.k::HUGEINT - 1 AND B.k::HUGEINT + 1")
    hold([a, b], steps, near, 9)
    hold([a, b], steps, with_condition("A.k = B.k + 1", "A.k = B.k::HUGEINT + 1"), 2)
    hold([a, b], steps, with_condition("ABS(A.k - B.k) <= 1", "ABS(A.k::HUGEINT - B.k) <= 1"), 9)
    hold([a, b], steps, with_condition("A.k / B.k > 0.5", ""), 11)


def test_late_and_unreadable_rows_are_counted_and_change_nothing() -> None:
    a, b = stream("A", pa.int64(), lateness=2 * SECOND), stream("B", pa.int64())
    steps = [
        {"A": keyed(a, [1, 2], [10, 20]), "B": keyed(b, [1], [20])},
        {"A": keyed(a, [1, 1, 1], [17.999999, 18, 19]), "B": keyed(b, [1], [19])},
    ]
    found = hold([a, b], steps, pair("A", "B"), 3)
    assert found.engine.late["A"].select(["u", "_watermark"]).to_pylist() == [
        {"u": 0, "_watermark": datetime.fromtimestamp(BEGIN // SECOND + 18, UTC).replace(tzinfo=None)}
    ]
    assert found.engine.late["B"]["u"].to_pylist() == [0]
    missing = {"A": steps[0]["A"].set_column(2, "ts", pa.nulls(2, US))}
    found.engine.push(missing)
    assert found.engine.dead_letters["A"]["u"].to_pylist() == [0, 1]
    assert all("NULL" in reason for reason in found.engine.dead_letters["A"]["_reason"].to_pylist())
