"""Join states from step to step, in memory and in files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.model.errors import CheckpointError
from midstream.model.manifest import StateListing
from midstream.plan.signature import Signature
from midstream.state.chunk_store import ChunkStore
from midstream.state.combinations import Combinations
from midstream.state.compaction import PACE
from midstream.state.join_state import JoinState
from midstream.state.memory_store import MemoryStore
from midstream.state.sorted_run import SortedRun, sort_run
from midstream.state.specs import StateSpec
from midstream.storage.files import FileStore

SPEC = StateSpec(Signature("0", ("A", "B"), ("A.k = B.k",)), ("A", "B"), ("ts",), "hash", ())
SCAN = StateSpec(Signature("0", ("A", "B"), ()), ("A", "B"), ("ts",), "scan")

Stores = Callable[[], ChunkStore]


@pytest.fixture(params=["memory", "files"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ChunkStore:
    return MemoryStore() if request.param == "memory" else FileStore(tmp_path / "store")


def run(codes: list[int], until: list[int], first: int = 0, *, scan: bool = False) -> SortedRun:
    """Combinations whose row numbers say which they are."""
    refs = np.arange(first, first + len(codes))
    found = Combinations({"A": refs, "B": refs * 10}, {"ts": np.array(until) - 5}, {"ts": np.array(until)})
    return SortedRun(None, found) if scan else sort_run(np.array(codes, np.int64), found)


def content(state: JoinState) -> list[tuple[int, int, int, int]]:
    """(code, row of A, row of B, until) of all old combinations; checks that codes ascend in each run."""
    found = []
    for piece in state.old:
        codes = piece.codes if piece.codes is not None else np.zeros(len(piece), np.int64)
        assert (codes[1:] >= codes[:-1]).all()
        columns = codes, piece.combinations.refs["A"], piece.combinations.refs["B"], piece.combinations.valid_to["ts"]
        assert (piece.combinations.valid_to["ts"] - piece.combinations.valid_from["ts"] == 5).all()
        found += list(zip(*(c.tolist() for c in columns), strict=True))
    return sorted(found)


def load(
    listing: StateListing, store: ChunkStore, bound: int = -100, spec: StateSpec = SPEC, dying: int = PACE.dying
) -> JoinState:
    return JoinState.load(spec, listing, {"ts": bound}, store, dying)


def test_what_is_inserted_is_there_in_the_next_step(store: ChunkStore) -> None:
    state = load(StateListing(), store)
    assert content(state) == []
    assert state.live == 0
    assert state.insert(run([7, 3, 7], [10, 11, 12]))
    assert state.live == 3
    assert content(state) == [], "the step's own rows stand apart"
    listing = state.finish(store, "lane/00000000-s")
    assert listing.live == 3
    assert sum(ref.rows for ref in listing.chunks) == 3
    assert content(load(listing, store)) == [(3, 1, 10, 11), (7, 0, 0, 10), (7, 2, 20, 12)]


def test_a_second_insert_in_a_step_is_not_taken(store: ChunkStore) -> None:
    state = load(StateListing(), store)
    assert state.insert(run([1], [10]))
    assert not state.insert(run([1], [10]))
    assert state.finish(store, "lane/00000000-s").live == 1


def test_purge_leaves_what_ends_at_the_bound_and_counts_the_rest(store: ChunkStore) -> None:
    state = load(StateListing(), store)
    state.insert(run([1, 2, 3, 4], [10, 11, 12, 13]))
    listing = state.finish(store, "lane/00000000-s")
    later = load(listing, store, 12)
    assert [until for *_, until in content(later)] == [12, 13]
    assert later.purged == 2
    assert later.live == 2
    again = later.finish(store, "lane/00000001-s")
    assert again.live == 2
    assert load(again, store, 12).purged == 0, "what was purged is not counted twice"
    assert load(again, store, 14).purged == 2
    assert load(again, store, 14).finish(store, "lane/00000002-s").chunks == ()


def test_a_dead_chunk_is_not_read() -> None:
    store = MemoryStore()
    state = load(StateListing(), store)
    state.insert(run([1, 2], [10, 11]))
    listing = replace(state.finish(store, "lane/00000000-s"))  # As another process has it: it knows no run.
    store.forget([ref.name for ref in listing.chunks])
    assert load(listing, store, 12).purged == 2
    with pytest.raises(CheckpointError):
        load(listing, store, 11)


def test_an_untouched_chunk_keeps_its_name(store: ChunkStore) -> None:
    state = load(StateListing(), store)
    state.insert(run([1, 2, 3], [10, 11, 12]))
    listing = state.finish(store, "lane/00000000-s")
    assert load(listing, store, 11).finish(store, "lane/00000001-s").chunks == listing.chunks
    rewritten = load(listing, store, 12).finish(store, "lane/00000001-s")
    assert rewritten.chunks != listing.chunks, "most of it is dead: the rest is written anew"
    assert [ref.rows for ref in rewritten.chunks] == [1]


def test_an_unsorted_state_keeps_its_order(store: ChunkStore) -> None:
    state = load(StateListing(), store, spec=SCAN)
    state.insert(run([0, 0, 0], [12, 10, 11], scan=True))
    found = load(state.finish(store, "lane/00000000-s"), store, 11, SCAN)
    assert found.old[0].codes is None
    assert found.old[0].combinations.refs["A"].tolist() == [0, 2]


def test_codes_of_a_band_state_are_doubles(store: ChunkStore) -> None:
    spec = StateSpec(Signature("0", ("A", "B"), ()), ("A", "B"), ("ts",), "band")
    state = load(StateListing(), store, spec=spec)
    refs = np.arange(3)
    values = Combinations({"A": refs, "B": refs}, {"ts": refs}, {"ts": refs + 9})
    state.insert(sort_run(np.array([1.5, np.nan, -np.inf]), values))
    (found,) = load(state.finish(store, "lane/00000000-s"), store, spec=spec).old
    assert found.codes is not None
    assert found.codes.dtype == np.float64
    assert found.combinations.refs["A"].tolist() == [2, 0, 1]


@pytest.mark.parametrize("dying", [(PACE.dying,), (1,), (1, PACE.dying)], ids=["small", "large", "in turn"])
@pytest.mark.parametrize("kind", ["memory", "files"])
@settings(max_examples=15, deadline=None)
@given(steps=st.lists(st.tuples(st.lists(st.integers(0, 3), max_size=4), st.integers(0, 3)), max_size=25))
def test_many_steps_against_a_list(
    kind: str, dying: tuple[int, ...], steps: list[tuple[list[int], int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A state that is compacted and purged holds what a plain list would; the bound never falls."""
    store: ChunkStore = MemoryStore() if kind == "memory" else FileStore(tmp_path_factory.mktemp("chunks"))
    kept: list[tuple[int, int, int, int]] = []
    listing, number, bound = StateListing(), 0, 0
    for step, (codes, moved) in enumerate(steps):
        bound += moved
        state = load(listing, store, bound, dying=dying[step % len(dying)])
        before = len(kept)
        kept = [entry for entry in kept if entry[3] >= bound]
        assert content(state) == sorted(kept)
        assert state.purged == before - len(kept)
        until = [bound + 1 + (number + i) % 4 for i in range(len(codes))]
        state.insert(run(codes, until, number))
        kept += [(code, number + i, (number + i) * 10, until[i]) for i, code in enumerate(codes)]
        number += len(codes)
        listing = state.finish(store, f"lane/{step:08d}-s")
        assert listing.live == len(kept)
        assert len(listing.chunks) <= 12
