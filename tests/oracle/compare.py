"""Equality of answers: as multisets of rows, exact but for rounding, and the order in which they come."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from tests.oracle.answer import Answer
from tests.oracle.spec import TIME

Row = tuple[Any, ...]


def difference(found: pa.Table, expected: pa.Table, approximate: Iterable[str] = ()) -> str:
    """How two tables differ as multisets of rows, in words; empty if they do not.

    NaN equals NaN, -0.0 equals 0.0; columns in `approximate` may be off by rounding, all others are exact.
    """
    if found.column_names != expected.column_names:
        return f"columns {found.column_names}, expected {expected.column_names}"
    for name in expected.column_names:
        kinds = {kind(found.schema.field(name).type), kind(expected.schema.field(name).type)} - {"null"}
        if len(kinds) > 1:
            return f"column {name} is {found.schema.field(name).type}, expected {expected.schema.field(name).type}"
    loose = [place for place, name in enumerate(expected.column_names) if name in set(approximate)]
    mine, theirs = rows(found), rows(expected)
    if loose:
        return _rounded_difference(mine, theirs, loose)
    return _describe(Counter(mine) - Counter(theirs), Counter(theirs) - Counter(mine), len(mine), len(theirs))


def assert_same(found: pa.Table | Sequence[pa.Table], expected: Answer, label: str = "") -> None:
    """Fail unless a query's whole output (one table, or one for each step) is the answer."""
    tables = [found] if isinstance(found, pa.Table) else list(found)
    whole = pa.concat_tables(tables, promote_options="default") if tables else expected.table.slice(0, 0)
    problem = difference(whole, expected.table, expected.approximate) or _other_zones(whole, expected.table)
    assert not problem, f"{label}: {problem}" if label else problem


def assert_each_step_same(found: Sequence[pa.Table | None], expected: Answer, label: str = "") -> None:
    """Fail unless every row is put out in the very step that makes it an answer."""
    for step, table in enumerate(found):
        wanted = expected.table.filter(pa.array([s == step for s in expected.steps], pa.bool_()))
        given = wanted.slice(0, 0) if table is None else table
        problem = difference(given, wanted, expected.approximate) or _other_zones(given, wanted)
        assert not problem, f"{label} step {step}: {problem}"


def _other_zones(found: pa.Table, expected: pa.Table) -> str:
    """Which times have a zone in one of the tables only, in words; empty if none."""
    pairs = [(name, found.schema.field(name).type, expected.schema.field(name).type) for name in expected.column_names]
    moments = [pair for pair in pairs if all(map(pa.types.is_timestamp, pair[1:]))]
    wrong = [f"{name} is {mine}, not {theirs}" for name, mine, theirs in moments if bool(mine.tz) != bool(theirs.tz)]
    return "; ".join(wrong)


def assert_ordered(found: Sequence[pa.Table], *, throughout: bool, label: str = "") -> None:
    """Fail unless results come in order of time within each step; `throughout`: over all steps too."""
    before: int | None = None
    for step, table in enumerate(found):
        if TIME not in table.column_names:
            return
        times = table[TIME].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
        assert times == sorted(times), f"{label} step {step}: not in order of time: {times}"
        if throughout and times:
            assert before is None or before <= times[0], f"{label} step {step}: {times[0]} comes after {before}"
            before = times[-1]


def rows(table: pa.Table) -> list[Row]:
    """The rows as tuples of values that compare as SQL values do and can be hashed."""
    columns = [[normal(value) for value in _plain(column).to_pylist()] for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    return column


def normal(value: Any) -> Any:
    """A value that can be hashed; NaN is a word and -0.0 is 0.0."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, dict):
        return tuple((key, normal(inner)) for key, inner in value.items())
    if isinstance(value, list | tuple):
        return tuple(normal(inner) for inner in value)
    return value


def kind(type_: pa.DataType) -> str:
    """What sort of values a type holds, without its width."""
    for name, test in (
        ("null", pa.types.is_null),
        ("integer", pa.types.is_integer),
        ("float", pa.types.is_floating),
        ("string", pa.types.is_string),
        ("string", pa.types.is_large_string),
        ("binary", pa.types.is_binary),
        ("binary", pa.types.is_large_binary),
        ("time", pa.types.is_timestamp),
    ):
        if test(type_):
            return name
    if pa.types.is_list(type_):
        return f"list of {kind(type_.value_type)}"
    if pa.types.is_decimal(type_):
        return "integer" if type_.scale == 0 and type_.precision == 38 else "decimal"
    return str(type_)


def _rounded_difference(mine: list[Row], theirs: list[Row], loose: list[int]) -> str:
    groups: dict[Row, tuple[list[Row], list[Row]]] = {}
    for side, table in enumerate((mine, theirs)):
        for row in table:
            exact = tuple(value for place, value in enumerate(row) if place not in loose)
            groups.setdefault(exact, ([], []))[side].append(tuple(row[place] for place in loose))
    extra: Counter[Row] = Counter()
    missing: Counter[Row] = Counter()
    for exact, (ours, other) in groups.items():
        ours.sort(key=_sort_key)
        other.sort(key=_sort_key)
        if len(ours) != len(other) or not all(_close(a, b) for a, b in zip(ours, other, strict=True)):
            extra.update(exact + row for row in ours)
            missing.update(exact + row for row in other)
    return _describe(extra, missing, len(mine), len(theirs))


def _sort_key(row: Row) -> list[tuple[int, Any]]:
    return [(0, 0) if v is None else (2, 0) if v == "NaN" else (1, v) for v in row]


def _close(one: Row, other: Row) -> bool:
    return all(
        a == b or (isinstance(a, float) and isinstance(b, float) and math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9))
        for a, b in zip(one, other, strict=True)
    )


def _describe(extra: Counter[Row], missing: Counter[Row], found: int, expected: int) -> str:
    if not extra and not missing:
        return ""
    parts = [f"{found} rows, expected {expected}"]
    for word, counter in (("missing", missing), ("too many", extra)):
        if counter:
            shown = [f"{row} x{count}" if count > 1 else str(row) for row, count in list(counter.items())[:8]]
            parts.append(f"{word} ({sum(counter.values())}): {'; '.join(shown)}")
    return "\n  ".join(parts)
