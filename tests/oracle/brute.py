"""The same answers by brute force: row by row, nested loops, moment after moment. It checks the oracle."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

Values = dict[str, Any]
Test = Callable[[dict[str, Values]], bool | None]


@dataclass(frozen=True)
class Arrived:
    """An admitted row, in order of arrival."""

    stream: str
    ts: int
    number: int
    values: Values


@dataclass(frozen=True)
class Input:
    """A source: a window of so much time or so many rows, or none."""

    alias: str
    stream: str
    range: int | None = None
    rows: int | None = None


Combination = dict[str, Arrived]


def joined(inputs: list[Input], rows: list[Arrived], test: Test) -> Iterator[tuple[int, Combination]]:
    """The results of a join with their times, row after row as they arrive."""
    past: dict[str, list[Arrived]] = {source.stream: [] for source in inputs}
    for row in rows:
        if row.stream not in past:
            continue
        past[row.stream].append(row)
        choices = [[r for r in (past[s.stream][-s.rows :] if s.rows is not None else past[s.stream])] for s in inputs]
        for picked in itertools.product(*choices):
            if not any(r is row for r in picked):
                continue
            time = max(r.ts for r in picked)
            in_time = all(s.range is None or time - r.ts <= s.range for s, r in zip(inputs, picked, strict=True))
            combination = {s.alias: r for s, r in zip(inputs, picked, strict=True)}
            if in_time and test({alias: r.values for alias, r in combination.items()}) is True:
                yield time, combination


def window(source: Input, rows: list[Arrived], now: int) -> list[Arrived]:
    """CQL's relation: the rows of a source that are in its window at a time."""
    there = sorted((r for r in rows if r.stream == source.stream and r.ts <= now), key=lambda r: (r.ts, r.number))
    if source.rows is not None:
        return there[-source.rows :]
    return [r for r in there if source.range is None or now <= r.ts + source.range]


def at_instant(inputs: list[Input], rows: list[Arrived], test: Test, now: int) -> list[dict[str, Values]]:
    """The combinations that are alive at an instant."""
    choices = [window(source, rows, now) for source in inputs]
    found = [{s.alias: r.values for s, r in zip(inputs, picked, strict=True)} for picked in itertools.product(*choices)]
    return [combination for combination in found if test(combination) is True]


def change_log(
    minuend: Input, others: list[tuple[Input, tuple[str, ...], Test]], rows: list[Arrived], test: Test, until: int
) -> list[tuple[int, str, Values]]:
    """The changes of a difference, by looking at every microsecond from 0 up to (not including) `until`."""
    log: list[tuple[int, str, Values]] = []
    before: dict[int, Values] = {}
    for now in range(until):
        alive: dict[int, Values] = {}
        for row in window(minuend, rows, now):
            if test({minuend.alias: row.values}) is not True:
                continue
            matched = any(
                all(equal(row.values[c], other.values[c]) for c in columns)
                and holds({source.alias: other.values}) is True
                for source, columns, holds in others
                for other in window(source, rows, now)
            )
            if not matched:
                alive[row.number] = row.values
        log += [(now, "-", values) for number, values in before.items() if number not in alive]
        log += [(now, "+", values) for number, values in alive.items() if number not in before]
        before = alive
    return log


def equal(one: Any, other: Any) -> bool | None:
    """SQL equality: NULL is not known, NaN equals NaN."""
    if one is None or other is None:
        return None
    return is_nan(one) if is_nan(other) else one == other


def less(one: Any, other: Any) -> bool | None:
    """SQL order: NaN is greater than every other number."""
    if one is None or other is None:
        return None
    if is_nan(one) or is_nan(other):
        return is_nan(other) and not is_nan(one)
    return bool(one < other)


def both(*parts: bool | None) -> bool | None:
    """AND of three-valued logic."""
    return False if False in parts else None if None in parts else True


def either(*parts: bool | None) -> bool | None:
    """OR of three-valued logic."""
    return True if True in parts else None if None in parts else False


def is_nan(value: Any) -> bool:
    """Whether a value is the number that is none."""
    return isinstance(value, float) and math.isnan(value)


def middle(values: list[Any]) -> float | None:
    """MEDIAN, NaN greatest."""
    return None if not values else float(median(sorted(values, key=lambda v: (is_nan(v), v))))
