"""Base rows: fetched by their numbers, from one run, from few and from many."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.state.rows import BaseRows, RowRun


def run(first: int, size: int) -> RowRun:
    numbers = list(range(first, first + size))
    texts = [None if n % 3 == 0 else f"row {n}" for n in numbers]
    return RowRun(first, pa.record_batch({"n": pa.array(numbers, pa.int64()), "s": pa.array(texts, pa.string())}))


def rows(first: int, sizes: list[int]) -> BaseRows:
    runs = []
    for size in sizes:
        runs.append(run(first, size))
        first += size
    return BaseRows(runs[:-1], runs[-1])


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 50), st.lists(st.integers(0, 30), min_size=1, max_size=7), st.data())
def test_rows_are_fetched_in_the_order_given(first: int, sizes: list[int], data: st.DataObject) -> None:
    base, total = rows(first, sizes), sum(sizes)
    wanted = data.draw(st.lists(st.integers(first, first + total - 1), max_size=40)) if total else []
    for _ in range(2):  # the second time from what the first has put together
        refs = np.array(wanted, np.int64)
        assert base.fetch("n", refs).to_pylist() == wanted
        assert base.fetch("s", refs).to_pylist() == [None if n % 3 == 0 else f"row {n}" for n in wanted]


@pytest.mark.parametrize("wanted", [[3], [0, 99, 50, 50], list(range(100)), list(range(99, -1, -1)), []])
def test_few_of_many(wanted: list[int]) -> None:
    assert rows(0, [10] * 10).fetch("n", np.array(wanted, np.int64)).to_pylist() == wanted


def test_the_steps_own_rows_are_handed_out_as_they_are() -> None:
    base = rows(5, [4, 3])
    assert base.fetch("n", np.arange(9, 12)) is base.new.batch.column("n") or base.fetch("n", np.arange(9, 12)).equals(
        base.new.batch.column("n")
    )
    assert base.fetch("n", np.array([9, 11, 11])).to_pylist() == [9, 11, 11]
    assert base.fetch("n", np.array([11, 10, 9])).to_pylist() == [11, 10, 9]


def test_as_many_rows_as_the_step_brought_need_not_be_the_steps() -> None:
    base = rows(0, [3, 3])
    assert base.fetch("n", np.array([0, 1, 2])).to_pylist() == [0, 1, 2]
    assert base.fetch("n", np.array([3, 3, 5])).to_pylist() == [3, 3, 5]


def test_rows_that_do_not_begin_at_nothing() -> None:
    base = BaseRows([run(100, 2)], run(102, 0))
    assert base.fetch("n", np.array([101, 100])).to_pylist() == [101, 100]
