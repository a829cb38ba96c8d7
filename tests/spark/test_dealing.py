"""Rows are dealt to lanes alike on both hosts: Spark's exchange and the embedded engine."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from midstream.expr.evaluate import holds
from midstream.expr.expression import Column, Expression
from midstream.logical.query import Query
from midstream.model.errors import MidstreamError
from midstream.model.schema import StreamSchema
from midstream.plan.signature import canonical
from midstream.runtime.lane_key import SLOTS, lane_key, slots, slots_of
from midstream.runtime.watermark import StepClock
from midstream.spark.blocks import Split, shares
from midstream.spark.exchange import Group
from midstream.spark.layout import STREAM, StepLayout
from midstream.spark.session import ship
from midstream.spark.stages import blocks_of
from midstream.spark.unpack import StreamSlots
from midstream.sql.parse import parse_query
from midstream.state.base_state import TIME
from midstream.state.keys import key_codes

ROWS = 240
RANDOM = random.Random(7)


def whole(bits: int) -> list[object]:
    """Whole numbers of so many bits: the ends, some near zero that all types share, others."""
    most = 2 ** (bits - 1)
    return [-most, most - 1, *range(-3, 12), *(RANDOM.randrange(-most, most) for _ in range(40))]


def decimals(digits: int, places: int) -> list[object]:
    most = 10**digits
    drawn = [0, 1, -1, most - 1, 1 - most, *(RANDOM.randrange(1 - most, most) for _ in range(30))]
    # Where the fewest bytes of a number turn longer.
    edges = [sign * 2**bits + more for bits in range(6, 126) for sign in (1, -1) for more in (-1, 0, 1)]
    drawn += RANDOM.sample([one for one in edges if abs(one) < most], 80 if digits > 5 else 20)
    wholes = [Decimal(n) for n in (-2, 0, 1, 3, 7, 10)]
    return [*(Decimal(f"{n}E-{places}") for n in drawn), *wholes]


TEXTS = ["", "a", "A", "ab", "1", "日本", "é", "e\u0301", "x" * 7, "x" * 8, "\0", "a\0"]
TEXTS += ["".join(RANDOM.choices("abcé漢 ", k=RANDOM.randrange(0, 90))) for _ in range(60)]
REALS = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1.0, 3.0, 7.0, -2.0, 0.1, 1.5, 1e300, 5e-324, 2.0**53]
DAYS = [date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31), date(1582, 10, 4)]
MOMENTS = [*(datetime(day.year, day.month, day.day) for day in DAYS)]
MOMENTS += [datetime(2024, 2, 29, 12, 0, 0, 1) + timedelta(microseconds=RANDOM.randrange(10**9)) for _ in range(20)]

FAR_DAYS = [2**31 - 1, -(2**31), 3_000_000, 106_751_991, 106_751_992]
"""In days since 1970, among them the last that is a TIMESTAMP, and the first that is none."""

FAR_MOMENTS = [86_400_000_000 * 3_000_000, 2**62, -(2**62), 86_400_000_000 * 106_751_991]
"""In microseconds since 1970."""

VALUES: dict[str, tuple[pa.DataType, list[object]]] = {
    "truth": (pa.bool_(), [True, False]),
    "tiny": (pa.int8(), whole(8)),
    "small": (pa.int16(), whole(16)),
    "whole": (pa.int32(), whole(32)),
    "big": (pa.int64(), [*whole(64), 2**53 + 1]),
    "single": (pa.float32(), [one for one in REALS if abs(one) < 1e38 or one != one or math.isinf(one)]),
    "precise": (pa.float64(), REALS),
    "cents": (pa.decimal128(5, 2), decimals(5, 2)),
    "amount": (pa.decimal128(18, 4), decimals(18, 4)),
    "wide": (pa.decimal128(19, 0), decimals(19, 0)),
    "widest": (pa.decimal128(38, 10), decimals(38, 10)),
    "words": (pa.string(), list(TEXTS)),
    "letters": (
        pa.binary(),
        [one.encode() for one in TEXTS] + [RANDOM.randbytes(RANDOM.randrange(70)) for _ in range(60)],
    ),
    "day": (pa.date32(), [*((day - date(1970, 1, 1)).days for day in DAYS), *FAR_DAYS]),
    "plain": (pa.timestamp("us"), [*MOMENTS, *FAR_MOMENTS]),
    "zoned": (pa.timestamp("us", "UTC"), [*MOMENTS, *FAR_MOMENTS]),
    "clock": (pa.time64("us"), [time(0), time(12, 30), time(23, 59, 59, 999_999)]),
}
"""For each type of a column its values; many types have some that are equal to another type's."""

NOT_OF_SPARK = ["clock"]


def column(name: str) -> pa.Array:
    """Every value of a type at least once, and NULLs."""
    kind, values = VALUES[name]
    drawn = [None, None, None, *values, *RANDOM.choices(values, k=ROWS)][:ROWS]
    RANDOM.shuffle(drawn)
    if name == "day":
        return pa.array(drawn, pa.int32()).cast(kind)
    return pa.array(drawn, kind)


def rows() -> pa.Table:
    times = pa.array([RANDOM.randrange(10**12) for _ in range(ROWS)], pa.timestamp("us", "UTC"))
    columns = {name: column(name) for name in VALUES if name not in NOT_OF_SPARK}
    return pa.table({"id": range(ROWS), "ts": times, **columns, "ts_again": times})


TABLES = {"A": rows(), "B": rows()}
SCHEMA = TABLES["A"].schema
STREAMS = {name: StreamSchema(name, SCHEMA, "ts") for name in "AB"}
SLOTTED = {name: TIME if name == "ts" else f"_c{at}" for at, name in enumerate(SCHEMA.names)}
LAYOUT = StepLayout(("A", "B"), {"A": SLOTTED, "B": SLOTTED})

Key = Mapping[str, Expression]


def key_of(condition: str) -> Key | None:
    """The key by which the two streams of a join are dealt; None where the condition has no meaning."""
    try:
        query = parse_query(f"SELECT A.id FROM A, B WHERE {condition} WINDOW 1 SECOND", STREAMS)
    except MidstreamError:
        return None
    return lane_key(canonical(query)[0])


CONDITIONS = [f"A.{left} = B.{right}" for left, right in product(SCHEMA.names, repeat=2) if left <= right]
CONDITIONS += [
    "A.whole + 1 = B.big", "LOWER(A.words) = LOWER(B.words)", "A.big = B.big AND A.words = B.words",
    "CAST(A.words AS VARCHAR) = B.words", "A.plain::DATE = B.day", "CAST(A.precise AS BIGINT) = B.tiny",
]  # fmt: skip
KEYS = {condition: key for condition in CONDITIONS if (key := key_of(condition)) is not None}


def in_rows(stream: str) -> pa.RecordBatch:
    """A stream's rows as the language sees them."""
    table = TABLES[stream]
    (batch,) = table.append_column(TIME, table.column("ts").cast(pa.int64())).combine_chunks().to_batches()
    return batch


def here(key: Key, stream: str) -> list[int]:
    return [int(slot) for slot in slots(key, stream, in_rows(stream))]


@pytest.fixture(scope="module")
def union(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    """The rows of both streams as a micro-batch has them."""
    folder, frames = tmp_path_factory.mktemp("streams"), []
    for number, (name, table) in enumerate(TABLES.items()):
        pq.write_table(table, folder / f"{name}.parquet")
        columns = [F.col(column).alias(slot) for column, slot in SLOTTED.items() if slot != TIME]
        frame = spark.read.parquet(str(folder / f"{name}.parquet"))
        frames.append(
            frame.select(F.lit(number).cast("tinyint").alias(STREAM), F.expr(f"unix_micros(ts) AS {TIME}"), *columns)
        )
    return frames[0].unionAll(frames[1]).localCheckpoint()


def by_spark(union: DataFrame, keys: Mapping[str, Key]) -> dict[str, dict[str, list[int]]]:
    """The slots that the tasks of a source give, by key and stream: lanes where there are as many."""
    both = frozenset({"A", "B"})
    groups = tuple(Group(name, SLOTS, both & key.keys(), key, {}) for name, key in keys.items())
    result = {name: {stream: [-1] * ROWS for stream in sorted(key)} for name, key in keys.items()}
    for group, lane, stream, row in dealt(union, LAYOUT, STREAMS.values(), groups, SLOTTED["id"]):
        if group == len(groups):  # Of a stream that no group reads.
            continue
        found = result[groups[group].name]["AB"[stream]]
        assert found[row] == -1, "a row came twice"
        found[row] = lane
    return result


def dealt(
    union: DataFrame, layout: StepLayout, streams: Iterable[StreamSchema], groups: tuple[Group, ...], id_slot: str
) -> Iterator[tuple[int, int, int, int]]:
    """The group, lane, stream and id of every row, once for each group that it goes to."""
    ship(union.sparkSession.sparkContext)
    schema = to_arrow_schema(union.schema, timezone="UTC")
    clock = StepClock(0, dict.fromkeys(layout.streams, 0))
    slots_of_streams = tuple(StreamSlots.of(stream, layout) for stream in streams)
    split = Split(schema, slots_of_streams, groups, 2, clock, None)
    parcels = [parcel for _, parcel in blocks_of(union, split, 2).collect()]
    for (group, lane, stream), share in shares(parcels, slots_of_streams, None).items():
        yield from ((group, lane, stream, row) for row in share.rows.column(id_slot).to_pylist())


def test_types_that_can_be_compared_are_among_the_keys() -> None:
    compared = [sorted(one[2:] for one in name.split(" = ")) for name in KEYS if " AND " not in name]
    for pair in (
        "whole big", "tiny big", "small whole", "whole precise", "single precise", "single single", "cents widest",
        "amount cents", "big cents", "wide widest", "day zoned", "day plain", "plain zoned", "ts zoned", "truth truth",
        "letters letters", "words words", "day day",
    ):  # fmt: skip
        assert sorted(pair.split()) in compared, pair
    assert len(KEYS) > 60


@pytest.mark.parametrize("part", range(4))
def test_spark_deals_as_the_embedded_engine_does(union: DataFrame, part: int) -> None:
    """Every row's slot is that of the embedded engine, whatever type the key has, and whatever types are compared."""
    keys = {name: key for at, (name, key) in enumerate(KEYS.items()) if at % 4 == part}
    for name, streams in by_spark(union, keys).items():
        for stream, found in streams.items():
            assert found == here(keys[name], stream), f"{name}: {stream}"


def test_groups_are_dealt_alike(union: DataFrame) -> None:
    """Of a lone stream rows without a key stay together: NULL is a group of GROUP BY."""
    keys = {}
    for name in SCHEMA.names:
        query = parse_query(f"SELECT {name} FROM A [RANGE 1 MINUTE] GROUP BY {name} EVERY 1 SECOND", STREAMS)
        keys[name] = lane_key(canonical(query)[0]) or {}
    for name, streams in by_spark(union, keys).items():
        assert streams["A"] == here(keys[name], "A"), name
        nulls = np.flatnonzero(in_rows("A").column(name).is_null())
        assert len({streams["A"][row] for row in nulls}) == (name not in ("id", "ts", "ts_again")), name


def test_equal_keys_meet() -> None:
    """Whatever types are compared, rows that are equal have one slot; of different ones hardly any have."""
    for condition, key in KEYS.items():
        query = parse_query(f"SELECT A.id FROM A, B WHERE {condition} WINDOW 1 SECOND", STREAMS)
        pairs = pairs_of(query)
        left, right = here(key, "A"), here(key, "B")
        for a, b in pairs:
            assert left[a] == right[b], (condition, in_rows("A").slice(a, 1), in_rows("B").slice(b, 1))


def pairs_of(query: Query) -> list[tuple[int, int]]:
    """The rows that a join finds, by the language itself, pair by pair."""
    left, right = np.repeat(np.arange(ROWS), ROWS), np.tile(np.arange(ROWS), ROWS)
    both = {"A": in_rows("A").take(pa.array(left)), "B": in_rows("B").take(pa.array(right))}
    mask = np.ones(len(left), np.bool_)
    for predicate in query.predicates:
        mask &= holds(predicate.expression, lambda column: both[column.alias].column(column.name), len(left))
    return list(zip(left[mask].tolist(), right[mask].tolist(), strict=True))


def test_texts_of_any_bytes(spark: SparkSession) -> None:
    """Texts that are not UTF-8 come to be dead letters in one lane, not in two or none; others are dealt as ever."""
    values = [RANDOM.randbytes(RANDOM.randrange(7)) for _ in range(300)]
    frame = spark.createDataFrame([(at, bytearray(one)) for at, one in enumerate(values)], "id INT, b BINARY")
    union = frame.selectExpr(
        f"0Y AS {STREAM}", f"CAST(id AS BIGINT) AS {TIME}", "id AS _c0", "CAST(b AS STRING) AS _c1"
    )
    schema = StreamSchema("A", pa.schema([("id", pa.int32()), ("s", pa.string()), ("ts", pa.timestamp("us"))]), "ts")
    layout = StepLayout(("A",), {"A": {"id": "_c0", "s": "_c1", "ts": TIME}})
    group = Group("texts", SLOTS, frozenset({"A"}), {"A": Column(pa.string(), "A", "s")}, {})
    found = sorted((row, lane) for _, lane, _, row in dealt(union, layout, [schema], (group,), "_c0"))
    assert [row for row, _ in found] == list(range(len(values)))
    read = {at: text for at, one in enumerate(values) if (text := one.decode(errors="ignore")).encode() == one}
    expected = slots_of(key_codes([pa.array(read.values())])[0]).tolist()
    assert [found[at][1] for at in read] == expected and 20 < len(read) < 280
