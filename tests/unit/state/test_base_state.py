"""The base state of a source: numbers, lifetimes, purging at the front, what stays readable."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from midstream.model.manifest import StateListing
from midstream.model.sharing import ALWAYS, SourceFilter
from midstream.model.window import EVENT_TIME, FOREVER, Clock, Window
from midstream.plan.signature import Signature
from midstream.state.base_state import TIME, BaseState, count_column
from midstream.state.chunk_store import ChunkStore
from midstream.state.lineage import Lineage
from midstream.state.memory_store import MemoryStore
from midstream.state.specs import RowsSpec
from midstream.storage.files import FileStore

CLOCKS = (EVENT_TIME, Clock("A"))


@pytest.fixture(params=["memory", "files"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ChunkStore:
    return MemoryStore() if request.param == "memory" else FileStore(tmp_path / "store")


def spec(window: Window | None, clocks: tuple[str, ...] = (EVENT_TIME,)) -> RowsSpec:
    return RowsSpec(Signature("0", ("A",), ()), "A", "A", window, ("k",), clocks, True, "A")


def batch(times: list[int], counts: list[int] | None = None) -> pa.RecordBatch:
    columns = {"k": pa.array([t * 10 for t in times], pa.int64()), TIME: pa.array(times, pa.int64())}
    if counts is not None:
        columns[count_column("A")] = pa.array(counts, pa.int64())
    return pa.RecordBatch.from_pydict(columns)


RANGE = spec(Window("range", 5))


def step(
    listing: StateListing, rows: pa.RecordBatch, bound: int, store: ChunkStore, number: int, of: RowsSpec = RANGE
) -> StateListing:
    bounds = {EVENT_TIME: bound}
    state = BaseState.load(of, listing, bounds, store)
    state.append(rows)
    live = state.count_alive(bounds) + rows.num_rows
    return state.finish(store, f"lane/{number:08d}-A", live, bounds)


def test_rows_are_numbered_on_from_step_to_step(store: ChunkStore) -> None:
    listing = step(StateListing(), batch([1, 2]), -99, store, 0)
    state = BaseState.load(RANGE, listing, {EVENT_TIME: -99}, store)
    found = state.append(batch([3]))
    assert found.refs["A"].tolist() == [2]
    assert state.rows is not None
    assert state.rows.fetch("k", np.array([0, 1, 2])).to_pylist() == [10, 20, 30]


def test_a_range_window_ends_after_its_size_and_a_rows_window_with_the_last_row() -> None:
    clocked = BaseState(spec(Window("range", 5), CLOCKS), [], 0, 0).append(batch([1, 4], [1, 2]))
    assert clocked.valid_to[EVENT_TIME].tolist() == [6, 9]
    assert clocked.valid_to[Clock("A")].tolist() == [FOREVER] * 2
    counted = BaseState(spec(Window("rows", 3), CLOCKS), [], 0, 0).append(batch([1, 4], [1, 2]))
    assert counted.valid_to[EVENT_TIME].tolist() == [FOREVER] * 2
    assert counted.valid_to[Clock("A")].tolist() == [3, 4]
    assert counted.valid_from[Clock("A")].tolist() == [1, 2]


def test_rows_numbers_survive_what_is_purged_before_them(store: ChunkStore) -> None:
    listing = StateListing()
    for number in range(40):
        listing = step(listing, batch([2 * number, 2 * number + 1]), 2 * number - 7, store, number)
        assert listing.next_row == 2 * number + 2
    assert sum(ref.rows for ref in listing.chunks) < 60, "the dead front is cut"
    state = BaseState.load(RANGE, listing, {EVENT_TIME: 71}, store)
    alive = [ref for piece in state.alive({EVENT_TIME: 71}) for ref in piece.refs["A"].tolist()]
    assert alive == list(range(66, 80)), "ts + 5 >= 71"
    assert state.count_alive({EVENT_TIME: 71}) == 14
    state.append(batch([80]))
    assert state.rows is not None
    assert state.rows.fetch("k", np.array([80, 66])).to_pylist() == [800, 660]


def test_a_long_lived_row_at_the_front_keeps_those_behind_readable(store: ChunkStore) -> None:
    """Only the front is cut, for row numbers stay consecutive; the dead rows behind count as dead all the same."""
    listing = step(StateListing(), batch([1000]), -99, store, 0)
    listing = step(listing, batch([1, 2, 3]), -99, store, 1)
    state = BaseState.load(RANGE, listing, {EVENT_TIME: 500}, store)
    assert state.count_alive({EVENT_TIME: 500}) == 1
    assert [p.refs["A"].tolist() for p in state.alive({EVENT_TIME: 500})] == [[0]]


def test_a_front_that_is_mostly_dead_is_cut_up_to_the_first_living_row(store: ChunkStore) -> None:
    listing = step(StateListing(), batch([1, 2, 3, 9, 4, 10, 11]), -99, store, 0)
    assert step(listing, batch([]), 9, store, 1).chunks == listing.chunks, "three of seven are dead"
    cut = step(listing, batch([]), 12, store, 1)
    assert [(ref.first, ref.rows) for ref in cut.chunks] == [(0, 7)], "up to a living row only three can go"
    more = step(StateListing(), batch([1, 2, 3, 4, 9, 5, 10]), -99, store, 2)
    cut = step(more, batch([]), 12, store, 3)
    assert [(ref.first, ref.rows) for ref in cut.chunks] == [(4, 3)]
    state = BaseState.load(RANGE, cut, {EVENT_TIME: 12}, store)
    state.append(batch([]))
    assert state.rows is not None
    assert state.rows.fetch("k", np.array([4, 6])).to_pylist() == [90, 100]
    assert [p.refs["A"].tolist() for p in state.alive({EVENT_TIME: 12})] == [[4, 6]]


def test_what_is_left_of_a_run_keeps_what_is_known_of_its_rows() -> None:
    store = MemoryStore()
    listing = step(StateListing(), batch([1, 2, 3, 4, 9, 5, 10]), -99, store, 0)
    cut = step(listing, batch([]), 12, store, 1)
    state = BaseState.load(RANGE, cut, {EVENT_TIME: 12}, store)
    (left,) = state.old
    assert left.held is not None and left.ref is not None, "it would be reckoned anew in this step and in the next"
    anew = state.combinations(left.batch, left.first)
    assert left.held.heading is anew.heading
    assert left.held.words.tolist() == anew.words.tolist()
    assert left.ref.lifetimes == anew.lifetimes() == {EVENT_TIME: (10, 15)}
    assert left.held.words.base is None, "it does not hold on to the dead rows"


def test_an_empty_step_changes_nothing(store: ChunkStore) -> None:
    listing = step(StateListing(), batch([1, 2]), -99, store, 0)
    assert step(listing, batch([]), -99, store, 1) == listing


def test_all_rows_dead_leaves_no_chunk_but_the_number(store: ChunkStore) -> None:
    listing = step(StateListing(), batch([1, 2]), -99, store, 0)
    assert step(listing, batch([]), 8, store, 1) == StateListing((), 0, 2)


@pytest.mark.parametrize("cast", [False, True])
@pytest.mark.parametrize("values", [list(range(8)), [None, *range(7)], [f"text {n}" for n in range(8)]])
def test_a_trimmed_chunk_takes_the_bytes_of_its_rows_taken_one_by_one(values: list[object], cast: bool) -> None:
    """Concatenation of what was cast, of which Arrow does not know that nothing is NULL, makes bitmaps."""
    keys = pa.array(values)
    if cast and pa.types.is_integer(keys.type):
        keys = keys.cast(pa.int32())
    rows = pa.RecordBatch.from_pydict({"k": keys, TIME: pa.array([1, 2, 3, 4, 5, 6, 30, 31], pa.int64())})
    store = MemoryStore()
    listing = step(StateListing(), rows, -99, store, 0)
    (ref,) = step(listing, batch([]), 20, store, 1).chunks
    wanted = rows.slice(6).take(pa.array([0, 1]))
    assert (ref.first, ref.rows, ref.bytes) == (6, 2, wanted.nbytes)
    assert store.get(ref).equals(wanted)


def test_rows_that_pass_every_filter_end_as_their_bits_say() -> None:
    now = {EVENT_TIME: np.array([5, 9, FOREVER - 1]), Clock("A"): np.array([1, 2, 3])}
    for kept_from in (ALWAYS, 6):
        filters = SourceFilter(0, (), 30, 0, kept_from=kept_from), SourceFilter(1, (), 10, 0)
        lineage = Lineage(filters, "A", "range")
        assert lineage.passed_by_all
        found, wanted = lineage.ends(now, None), lineage.ends(now, np.array([3, 3, 3]))
        assert {clock: ends.tolist() for clock, ends in found.items()} == {
            clock: ends.tolist() for clock, ends in wanted.items()
        }
