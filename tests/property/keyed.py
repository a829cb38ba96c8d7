"""Streams of a key and a time, and queries of them held to the oracle."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tests.oracle.arrival import Lifetime, Step
from tests.oracle.compare import assert_each_step_same
from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec, StreamSpec
from tests.property.drive import Case, Run, check

BEGIN = 1_700_000_000 * SECOND


US = pa.timestamp("us")


def stream(name: str, key: pa.DataType, **more: Any) -> StreamSpec:
    """A stream of a key and a time."""
    return StreamSpec(name, pa.schema([("k", key), ("u", pa.int64()), ("ts", US)]), **more)


def keyed(spec: StreamSpec, keys: Sequence[Any], seconds: Sequence[float] | float = 0.0) -> pa.Table:
    """A row for each key; `u` is its position."""
    times = seconds if isinstance(seconds, Sequence) else [seconds] * len(keys)
    micros = pa.array([BEGIN + round(t * SECOND) for t in times], pa.int64()).cast(US)
    return pa.table(
        [pa.array(keys, spec.schema.field("k").type), pa.array(range(len(keys)), pa.int64()), micros], spec.schema
    )


def pair(*names: str, window: int = 10 * SECOND, on: str = "k") -> QuerySpec:
    """An equi-join of the streams that names the rows it joins."""
    ties = tuple(Condition(f"{a}.{on} = {b}.{on}", (a, b)) for a, b in itertools.pairwise(names))
    items = (*(Item(f"{name}.u", name.lower()) for name in names), Item("_ts"))
    return QuerySpec(tuple(SourceSpec(name, name) for name in names), items, ties, window=window)


def hold(streams: Sequence[StreamSpec], steps: Sequence[Step], spec: QuerySpec, count: int, **options: Any) -> Run:
    """Run and compare with the oracle, step by step; `count` is the number of results, worked out by hand."""
    case = Case(tuple(streams), tuple(steps), (Lifetime("q", spec),))
    expected = case.expected()
    assert expected["q"].table.num_rows == count
    found = check(case, expected, **options)
    assert_each_step_same(found.outputs["q"], expected["q"])
    return found
