"""Random rows: few keys, many ties, nulls, NaN, disorder; all from one seed, so that a case is cheap."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

from tests.oracle.arrival import Step
from tests.oracle.spec import SECOND, StreamSpec

BEGIN = 1_700_000_000 * SECOND
"""Near which event times lie."""

TIME_TYPES = (pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.int64())

WORDS = ("a", "b", "ab", "", "é", "日本", "a%", "B")
NUMBERS = (0.0, math.nan, -0.0, 1.0, -math.nan, 1.5, 2.0, -1.0, math.inf)
AMOUNTS = (Decimal("0.00"), Decimal("1.00"), Decimal("1.50"), Decimal("-2.25"))
DAYS = (date(2024, 2, 28), date(2024, 2, 29), date(2024, 3, 1))

Pushed = list[tuple[str, dict[str, Any]]]
"""Rows with their streams, in the order in which they are pushed."""


def schema(time: pa.DataType) -> pa.Schema:
    """The columns every stream of a random case has; `u` is different in every row."""
    return pa.schema(
        [
            ("k", pa.int64()), ("n", pa.int32()), ("s", pa.string()), ("d", pa.float64()), ("m", pa.decimal128(8, 2)),
            ("day", pa.date32()), ("ok", pa.bool_()), ("u", pa.int64()), ("ts", time),
        ]
    )  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """What the rows of a case are like; times in seconds. `leads`: how far ahead of its time each stream comes.

    `slack` is the lateness the streams allow: None is as much as their disorder needs, so that no row is late. Where
    `time` is a TIMESTAMP in microseconds, the streams in `zoned` have times with a zone all the same.
    """

    seed: int
    sizes: tuple[int, ...]
    span: int
    keys: int = 4
    nulls: float = 0.1
    skew: bool = False
    jitter: bool = False
    disorder: int = 0
    leads: tuple[int, ...] = ()
    slack: int | None = None
    idle: int | None = None
    time: pa.DataType = TIME_TYPES[0]
    zoned: tuple[str, ...] = ()

    @property
    def in_order(self) -> bool:
        """Whether rows come in order of time over all streams."""
        return not self.disorder and not any(self.leads)


def draw_rows(shape: Shape) -> tuple[tuple[StreamSpec, ...], Pushed]:
    """The streams of a shape, and all its rows in the order in which they are pushed."""
    sequence: list[tuple[tuple[float, ...], str, dict[str, Any]]] = []
    streams: list[StreamSpec] = []
    leads = shape.leads or (0,) * len(shape.sizes)
    for index, (name, size) in enumerate(zip("ABCDE", shape.sizes, strict=False)):
        rng = Random(shape.seed * 31 + index)
        drawn = []
        for number in range(size):
            ts = rng.randrange(shape.span + 1) * SECOND + (rng.choice((0, 0, -1, 1)) if shape.jitter else 0)
            delay = rng.randrange(shape.disorder + 1) * SECOND if shape.disorder and rng.random() < 0.3 else 0
            drawn.append((ts, delay, _values(rng, shape, index * 1000 + number)))
        needed, greatest = 0, -math.inf
        for position, (ts, delay, values) in enumerate(sorted(drawn, key=lambda row: row[0] + row[1])):
            greatest = max(greatest, ts)
            needed = max(needed, int(greatest) - ts)
            values["ts"] = BEGIN + ts
            sequence.append(((ts + delay - leads[index] * SECOND, index, position), name, values))
        lateness = needed if shape.slack is None else shape.slack * SECOND
        idle = None if shape.idle is None or index == 0 else shape.idle * SECOND
        time = TIME_TYPES[1] if name in shape.zoned and shape.time == TIME_TYPES[0] else shape.time
        streams.append(StreamSpec(name, schema(time), "ts", lateness, idle))
    sequence.sort(key=lambda row: row[0])
    return tuple(streams), [(name, values) for _, name, values in sequence]


def _values(rng: Random, shape: Shape, unique: int) -> dict[str, Any]:
    def some(choices: tuple[Any, ...]) -> Any:
        if rng.random() < shape.nulls:
            return None
        return choices[0] if shape.skew and rng.random() < 0.6 else rng.choice(choices)

    return {
        "k": some(tuple(range(shape.keys))), "n": some(tuple(range(shape.keys))), "s": some(WORDS[: shape.keys + 1]),
        "d": some(NUMBERS[: 2 * shape.keys + 1]), "m": some(AMOUNTS), "day": some(DAYS),
        "ok": some((True, False)), "u": unique,
    }  # fmt: skip


def table(spec: StreamSpec, rows: list[dict[str, Any]]) -> pa.Table:
    """Rows as a table of the stream's schema; times are given in microseconds."""
    time = spec.schema.field(spec.timestamp).type
    columns = []
    for field in spec.schema:
        values = [row[field.name] for row in rows]
        if field.name == spec.timestamp and pa.types.is_timestamp(time):
            zone = pa.timestamp("us", time.tz)
            columns.append(pa.array(values, pa.int64()).cast(zone).cast(time))
        else:
            columns.append(pa.array(values, field.type))
    return pa.table(columns, schema=spec.schema)


def cut(
    streams: tuple[StreamSpec, ...], sequence: Pushed, cuts: tuple[int, ...], bare: bool = True
) -> tuple[Step, ...]:
    """The sequence cut into steps at these percentages; a stream without rows is left out (`bare`) or empty."""
    ends = [0, *(len(sequence) * c // 100 for c in sorted(cuts)), len(sequence)]
    steps: list[Step] = []
    for begin, end in itertools.pairwise(ends):
        step: dict[str, pa.Table] = {}
        for spec in streams:
            rows = [values for name, values in sequence[begin:end] if name == spec.name]
            if rows or not bare:
                step[spec.name] = table(spec, rows)
        steps.append(step)
    return tuple(steps)


def calm(shape: Shape) -> Shape:
    """The shape with all rows in order of time and no lateness."""
    return replace(shape, disorder=0, leads=(), slack=0)
