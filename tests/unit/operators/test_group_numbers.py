"""Groups get numbers in order of instant, then of their first rows, whatever kind of values they are told apart by."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.operators.group_numbers import codes_of, group_numbers

WIDE = st.one_of(st.integers(-3, 3), st.sampled_from((2**63 - 1, -(2**63), 2**62, 10**12)))
KINDS = {
    "near": (st.integers(0, 5), pa.int64()),
    "wide": (st.one_of(st.none(), WIDE), pa.int64()),
    "unsigned": (st.integers(0, 2**64 - 1), pa.uint64()),
    "text": (st.one_of(st.none(), st.sampled_from(("a", "b"))), pa.large_string()),
    "moment": (st.integers(0, 3).map(lambda n: n * 10_000_000), pa.timestamp("us")),
    "float": (st.sampled_from((0.0, -0.0, 1.5, float("nan"))), pa.float64()),
}


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.data())
def test_as_a_loop_over_the_rows_numbers_them(data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 12))
    instants = data.draw(st.lists(st.sampled_from((0, 10, 20, 10**15)), min_size=count, max_size=count))
    kinds = data.draw(st.lists(st.sampled_from(sorted(KINDS)), max_size=6))
    groups = [data.draw(st.lists(KINDS[kind][0], min_size=count, max_size=count)) for kind in kinds]
    columns = [pa.array(values, KINDS[kind][1]) for kind, values in zip(kinds, groups, strict=True)]
    numbers, first = group_numbers(pa.array(instants, pa.int64()), columns)
    known: dict[tuple[object, ...], int] = {}
    rows = zip(instants, *groups, strict=True)
    keys = [tuple(str(value).removeprefix("-0.0") or "0.0" for value in row) for row in rows]
    for row, key in enumerate(keys):
        known.setdefault(key, row)
    ordered = sorted(known.values(), key=lambda row: (instants[row], row))
    assert first.to_pylist() == ordered
    assert [ordered[number] for number in numbers] == [known[key] for key in keys]


@pytest.mark.parametrize("values", [[5, 6, 5], [2**63 - 1, -(2**63), 0], [10**15, 10**15], []])
def test_codes_are_equal_where_the_values_are(values: list[int]) -> None:
    codes = codes_of(pa.array(values, pa.int64())).tolist()
    assert [[a == b for b in codes] for a in codes] == [[a == b for b in values] for a in values]
