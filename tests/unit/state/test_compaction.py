"""Compaction: few chunks, neighbours only, nothing rewritten too often."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import midstream as ms
from midstream.state import compaction
from midstream.state.compaction import (
    AT_ONCE,
    MOST_OF_ROWS,
    MOST_SMALL,
    SMALL,
    choose_neighbours,
    is_sparse,
    rows_to_merge,
    to_merge,
)

sizes = st.lists(st.integers(0, 1000), max_size=60)


@settings(max_examples=150, deadline=None)
@given(sizes)
def test_a_run_is_of_neighbours_and_merging_ends(drawn: list[int]) -> None:
    left, total, merges = list(drawn), sum(drawn), 0
    while found := choose_neighbours(left):
        begin, end = found
        assert 0 <= begin < end - 1
        assert end <= len(left)
        left[begin:end] = [sum(left[begin:end])]
        merges += 1
        assert merges <= len(drawn)
    assert sum(left) == total


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 400))
def test_an_endless_stream_keeps_few_chunks(window: int) -> None:
    assert max(chunks for chunks, _ in history(window, 3 * window + 50)) <= 40


def test_few_chunks_are_left_alone() -> None:
    assert choose_neighbours([]) is None
    assert choose_neighbours([5]) is None
    assert choose_neighbours([900, 1, 900]) is None


def test_a_large_chunk_is_not_rewritten_for_small_ones() -> None:
    left = [10**9, *[1] * 30]
    while found := choose_neighbours(left):
        assert found[0] > 0
        left[found[0] : found[1]] = [sum(left[found[0] : found[1]])]


def test_sparse_is_less_than_half_alive() -> None:
    assert is_sparse(49, 100)
    assert not is_sparse(50, 100)
    assert is_sparse(0, 1)
    assert not is_sparse(0, 0)


def test_chunks_of_rows_are_merged_now_and_then() -> None:
    """A step's rows are written anew in few steps, and there are few chunks all the same."""
    sizes, merges = list[int](), 0
    for _ in range(400):
        sizes.append(1)
        while found := rows_to_merge([pa.record_batch({"k": pa.nulls(size, pa.int8())}) for size in sizes]):
            sizes[found[0] : found[1]] = [sum(sizes[found[0] : found[1]])]
            merges += 1
        assert len(sizes) <= MOST_OF_ROWS
    assert merges <= 400 / (AT_ONCE - 1)


def history(window: int, steps: int) -> list[tuple[int, int]]:
    """Steps of one row each, alive for `window` steps: after each step the chunks there are and the rows written."""
    chunks: list[tuple[int, int]] = []
    found = []
    for now in range(steps):
        chunks = [chunk for chunk in chunks if chunk[1] >= now - window]
        chunks.append((now, now))
        written = 1
        while merged := choose_neighbours([last - max(first, now - window) + 1 for first, last in chunks]):
            first, last = max(chunks[merged[0]][0], now - window), chunks[merged[1] - 1][1]
            chunks[merged[0] : merged[1]] = [(first, last)]
            written += last - first + 1
        found.append((len(chunks), written))
    return found


def test_there_are_never_many_small_neighbours() -> None:
    """However rows come in; and a row is not written anew for ever, for what is merged is small no longer."""
    sizes: list[int] = []
    written = 0
    for step in range(3_000):
        sizes.append(1 + step % 50)
        while found := to_merge(sizes):
            start, end = found
            written += sum(sizes[start:end])
            sizes[start:end] = [sum(sizes[start:end])]
        assert sum(size <= SMALL for size in sizes) <= MOST_SMALL
    assert written < (SMALL + 200) * 3_000 / MOST_SMALL


def test_chunks_are_merged_up_to_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [pa.record_batch({"t": ["x" * 96]})] * (MOST_OF_ROWS + 1)
    one = batches[0].nbytes
    assert rows_to_merge(batches) == (0, AT_ONCE)
    monkeypatch.setattr(compaction, "MOST_BYTES", 2 * one)
    assert rows_to_merge(batches) == (0, 2)
    monkeypatch.setattr(compaction, "MOST_BYTES", 2 * one - 1)
    assert rows_to_merge(batches) is None


@pytest.mark.parametrize("spread", [None, "psp_d"])
def test_a_join_of_long_texts_keeps_chunks_that_can_be_written(
    spread: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "MOST_BYTES", 7_000)
    engine = ms.Engine(seed=1)
    for name in "AB":
        engine.create_stream(name, "k BIGINT, t VARCHAR, ts TIMESTAMP", timestamp="ts")
    sql = "SELECT A.t AS a, B.t AS b FROM A, B WHERE A.k = B.k WINDOW 1000 SECONDS"
    engine.add_query("q", sql, spread=spread, nodes=spread and 2)
    found = 0
    for step in range(30):
        times = pa.array([1_000_000 * step, 1_000_000 * step + 1], pa.timestamp("us"))
        rows = pa.table({"k": [step % 3] * 2, "t": [f"{step:03} " * 250] * 2, "ts": times})
        found += engine.push({"A": rows, "B": rows})["q"].num_rows
    assert found == 3 * 20 * 20
    listed = [state for lane in engine.manifest.lane_states.values() for state in lane.states.values()]
    rows_of_a = [ref.rows for ref in listed[0].chunks]
    assert max(rows_of_a) < 7 and sum(rows_of_a) >= 30
