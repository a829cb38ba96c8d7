"""Predicates of a user for tests, each with the same condition in the words of DuckDB, which the oracle evaluates."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import midstream as ms


def close_by(a: pa.Array, b: pa.Array) -> pa.Array:
    """Numbers at most 1 apart."""
    return pc.less_equal(pc.abs(pc.subtract(a, b)), 1.0)


def edits(one: bytes, other: bytes) -> int:
    """How many bytes must be put in, taken out or changed."""
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, start=1):
        last, row = row, [at]
        for place, own in enumerate(other):
            row.append(min(last[place] + (letter != own), last[place + 1] + 1, row[place] + 1))
    return row[-1]


def alike(a: pa.Array, b: pa.Array, most: pa.Array) -> pa.Array:
    """Texts that so many edits make equal."""
    rows = zip(a.to_pylist(), b.to_pylist(), most.to_pylist(), strict=True)
    found = [None if None in row else edits(row[0].encode(), row[1].encode()) <= row[2] for row in rows]
    return pa.array(found, pa.bool_())


def even_sum(a: pa.Array, b: pa.Array, c: pa.Array) -> pa.Array:
    """Three integers of an even sum."""
    return pc.equal(pc.bit_wise_and(pc.add(a, pc.add(b, c)), 1), 0)


def odd(a: pa.Array) -> pa.Array:
    """Odd integers."""
    return pc.equal(pc.bit_wise_and(a, 1), 1)


def failing(a: pa.Array) -> pa.Array:
    """Raise."""
    raise ValueError("no such row")


def within_km(*columns: pa.Array) -> np.ndarray:
    """Places, by latitude and longitude, so many kilometres apart at most along a great circle; NULL is nowhere."""
    lat, lon, lat2, lon2, most = (np.asarray(column.to_numpy(zero_copy_only=False), float) for column in columns)
    a, o, b, p = map(np.radians, (lat, lon, lat2, lon2))
    inner = np.sin((b - a) / 2) ** 2 + np.cos(a) * np.cos(b) * np.sin((p - o) / 2) ** 2
    return 2 * 6371 * np.arcsin(np.sqrt(inner)) <= most


CLOSE_BY = ms.predicate("close_by", close_by, "DOUBLE", "DOUBLE")
ALIKE = ms.predicate("alike", alike, "VARCHAR", "VARCHAR", "INT")
EVEN_SUM = ms.predicate("even_sum", even_sum, "BIGINT", "BIGINT", "BIGINT")
ODD = ms.predicate("is_odd", odd, "BIGINT")
WITHIN_KM = ms.predicate("within_km", within_km, *["DOUBLE"] * 5)

CLOSE_BY_SQL = "ABS({a}.d - {b}.d) <= 1"
ALIKE_SQL = "LEVENSHTEIN({a}.s, {b}.s) <= 1"
EVEN_SUM_SQL = "(({a}.k + {b}.k + {c}.k) & 1) = 0"
ODD_SQL = "({a}.k & 1) = 1"
KILOMETRES_SQL = (
    "2 * 6371 * ASIN(SQRT(POW(SIN(RADIANS({b}.lat - {a}.lat) / 2), 2)"
    " + COS(RADIANS({a}.lat)) * COS(RADIANS({b}.lat)) * POW(SIN(RADIANS({b}.lon - {a}.lon) / 2), 2)))"
)
