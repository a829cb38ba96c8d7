"""Arrival numbers: time first, then stream, then position."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.operators.arrival import with_arrival_numbers
from midstream.state.base_state import TIME, count_column


def batch(times: list[int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({TIME: pa.array(times, pa.int64())})


@settings(max_examples=80, deadline=None)
@given(st.lists(st.lists(st.integers(0, 4), max_size=6), min_size=1, max_size=3), st.integers(0, 9), st.integers(0, 9))
def test_against_a_loop(times: list[list[int]], first: int, second: int) -> None:
    names = "ABC"[: len(times)]
    counts = dict(zip(names, (first, second), strict=False))
    found = with_arrival_numbers({name: batch(drawn) for name, drawn in zip(names, times, strict=True)}, counts)
    arrivals = sorted((ts, stream, position) for stream, drawn in enumerate(times) for position, ts in enumerate(drawn))
    seen = dict(counts)
    for ts, stream, position in arrivals:
        if names[stream] in seen:
            seen[names[stream]] += 1
        row = found[names[stream]].slice(position, 1).to_pylist()[0]
        assert row == {TIME: ts, **{count_column(name): seen[name] for name in counts}}


def test_without_counts_rows_are_left_alone() -> None:
    rows = {"A": batch([1])}
    assert with_arrival_numbers(rows, {}) == rows
