"""Rescaling: base rows find their new lanes, nothing is lost, everything else is computed again."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from midstream.expr.expression import Column
from midstream.model.errors import CheckpointError
from midstream.model.events import LanesRescaled, StateRebuilt
from midstream.model.ids import LaneId, StateId
from midstream.model.manifest import LaneState, StateListing
from midstream.runtime.lane_key import slots_of
from midstream.state.base_state import TIME
from midstream.state.chunk_store import store_chunk
from midstream.state.memory_store import MemoryStore
from midstream.step.rescaled_state import DealtState, adopt
from tests.unit.building import both, engine, table

NAMES = StateId("A", "0123456789ab", "rows")
DEALT = {NAMES: DealtState("A", ("q",), {stream: Column(pa.int64(), stream, "k") for stream in "AB"})}


def lane(store: MemoryStore, name: str, *batches: list[tuple[int, int]]) -> LaneState:
    """A lane whose base rows are chunks of (key, time)."""
    refs = []
    for number, rows in enumerate(batches):
        batch = pa.RecordBatch.from_pydict(
            {
                TIME: pa.array([ts for _, ts in rows], pa.int64()),
                "k": pa.array([key for key, _ in rows], pa.int64()),
            }
        )
        ends = [ts + 5 for _, ts in rows]
        refs.append(store_chunk(store, f"{name}/{number:08d}-A", batch, lifetimes={"ts": (min(ends), max(ends))}))
    boxes = {"q": {"box": "plan", "plan": "(A B)"}}
    other = {StateId("A", "0123456789ab", "scan"): StateListing(tuple(refs), 9, 0)}
    return LaneState({NAMES: StateListing(tuple(refs), 9, 9), **other}, boxes)


def content(state: LaneState, store: MemoryStore) -> list[tuple[int, int]]:
    listing = state.states.get(NAMES, StateListing())
    batches = [store.get(ref) for ref in listing.chunks]
    assert [ref.first for ref in listing.chunks] == [0] * len(batches)
    assert listing.live == listing.next_row == sum(b.num_rows for b in batches)
    columns = [(b.column("k").to_pylist(), b.column(TIME).to_pylist()) for b in batches]
    return [pair for keys, times in columns for pair in zip(keys, times, strict=True)]


@pytest.mark.parametrize("lanes", [1, 2, 3, 5, 4096])
def test_each_row_is_in_the_lane_of_its_key_in_order_of_time(lanes: int) -> None:
    store = MemoryStore()
    old = [lane(store, "x.0", [(0, 5), (4, 7)], [(2, 6)]), lane(store, "x.1", [(1, 3), (3, 9), (1, 1)])]
    rows = [(0, 5), (4, 7), (2, 6), (1, 3), (3, 9), (1, 1)]
    slots = dict(zip(range(5), slots_of(np.arange(5)).tolist(), strict=True))
    used = {slot % lanes for slot in slots.values()}
    assert len(used) > 1 or lanes == 1
    for number in sorted(used):
        found = adopt(old, DEALT, number, lanes, store, f"x.{number}/00000009-adopted")
        assert content(found, store) == sorted((r for r in rows if slots[r[0]] % lanes == number), key=lambda r: r[1])
        assert set(found.states) == {NAMES}, "states that can be computed again are left out"
        assert found.boxes == old[0].boxes


def test_chunk_lifetimes_cover_the_rows() -> None:
    store = MemoryStore()
    found = adopt(
        [lane(store, "x.0", [(0, 5)], [(0, 60)])],
        DEALT,
        int(slots_of(np.zeros(1, np.int64))[0]) % 2,
        2,
        store,
        "x.0/00000009-adopted",
    )
    assert found.states[NAMES].chunks[0].lifetimes == {"ts": (10, 65)}


def test_nothing_can_be_adopted_too() -> None:
    store = MemoryStore()
    assert adopt([], DEALT, 0, 2, store, "x.0/00000009-adopted") == LaneState()
    other = 1 - int(slots_of(np.ones(1, np.int64))[0]) % 2
    found = adopt([lane(store, "x.0", [(1, 5)])], DEALT, other, 2, store, "x.0/00000009-adopted")
    assert content(found, store) == []


def test_states_that_nobody_needs_any_more_are_left_out() -> None:
    store = MemoryStore()
    assert not adopt([lane(store, "x.0", [(0, 5)])], {}, 0, 2, store, "x.0/00000009-adopted").states


def test_rows_without_the_columns_of_their_key_cannot_be_spread() -> None:
    store = MemoryStore()
    batch = pa.RecordBatch.from_pydict({TIME: pa.array([1], pa.int64())})
    ref = store_chunk(store, "x.0/00000000-A", batch)
    with pytest.raises(CheckpointError, match="without the columns"):
        adopt([LaneState({NAMES: StateListing((ref,), 1, 1)})], DEALT, 0, 2, store, "x.0/00000009-adopted")


QUERIES = {
    "join": "SELECT A.j AS a, B.j AS b FROM A [RANGE 20 SECONDS], B [RANGE 20 SECONDS] WHERE A.k = B.k",
    "rows": "SELECT A.j AS a, B.j AS b FROM A [ROWS 3], B [RANGE 20 SECONDS] WHERE A.k = B.k",
    "text": "SELECT A.j AS a, B.j AS b FROM A [RANGE 9 SECONDS], B [RANGE 9 SECONDS] WHERE A.s = B.s AND A.k = B.k",
    "groups": "SELECT A.s, COUNT(*) AS n, SUM(A.j) AS t, _ts FROM A [RANGE 6 SECONDS] GROUP BY A.s EVERY 2 SECONDS",
    "grouped": "SELECT A.k, COUNT(*) AS n, _ts FROM A, B WHERE A.k = B.k GROUP BY A.k WINDOW 6 SECONDS EVERY 2 SECONDS",
    "last": "SELECT A.k, COUNT(*) AS n, _ts FROM A [ROWS 2], B [RANGE 6 SECONDS] WHERE A.k = B.k "
    "GROUP BY A.k EVERY 2 SECONDS",
    "except": "SELECT A.j, _ts FROM A [RANGE 5 SECONDS] EXCEPT ON (k) B [RANGE 3 SECONDS]",
    "three": "SELECT A.j AS a, B.j AS b, C.j AS c FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 6 SECONDS",
    "band": "SELECT A.j AS a, B.j AS b FROM A, B WHERE A.k - B.k BETWEEN 0 AND 1 WINDOW 6 SECONDS",
}


def answers(lanes: int, rescales: dict[int, int], migrations: dict[int, str]) -> dict[str, list[str]]:
    """Every query's rows over twelve steps, NULL keys among them."""
    made = engine("ABC", lanes=lanes)
    for name, sql in QUERIES.items():
        made.add_query(name, sql)
    found: dict[str, list[str]] = {name: [] for name in QUERIES}
    for step in range(12):
        if step in rescales:
            made.rescale(rescales[step])
        if step in migrations:
            made.migrate("three", migrations[step])
        keys = [None if step % 3 == 1 else step % 2, step % 4]
        rows = table(
            [step, step + 0.5], k=keys, j=[2 * step, 2 * step + 1], s=[None if step % 4 == 1 else "ab"[step % 2], "a"]
        )
        for name, answer in made.push(both("ABC", rows)).items():
            found[name] += map(str, answer.to_pylist())
    return {name: sorted(rows) for name, rows in found.items()}


def test_one_to_three_to_two_lanes_changes_no_answer() -> None:
    alone = answers(1, {}, {})
    assert all(alone.values())
    assert answers(1, {4: 3, 7: 2}, {}) == alone
    assert answers(3, {}, {}) == alone


def test_a_group_of_nulls_stays_in_one_lane() -> None:
    made = engine("A", lanes=3)
    made.add_query("q", "SELECT A.k, COUNT(*) AS n FROM A [RANGE 5 SECONDS] GROUP BY A.k EVERY 5 SECONDS")
    made.push({"A": table([1, 2, 3, 4, 4.5], k=[None, 1, None, None, None])})
    made.rescale(2)
    out = made.push({"A": table([6], k=[9])})["q"].to_pylist()
    assert sorted(map(str, out)) == ["{'k': 1, 'n': 1}", "{'k': None, 'n': 4}"]


def test_a_rescale_in_the_step_of_a_migration_changes_no_answer() -> None:
    alone = answers(1, {}, {})
    assert answers(2, {5: 3, 8: 1}, {5: "(A (B C))", 8: "[A: B C | B: A C | C: A B]", 9: "((A C) B)"}) == alone


def test_what_a_rescale_says() -> None:
    made = engine("AB")
    made.add_query("q", "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS")
    made.push(both("AB", table([1], k=[1])))
    made.rescale(2)
    made.rescale(3)
    made.push()
    assert [(e.old, e.new) for e in made.events if isinstance(e, LanesRescaled)] == [(1, 2), (2, 3)]
    rebuilt = [e for e in made.events if isinstance(e, StateRebuilt)]
    assert [(e.rows, e.step) for e in rebuilt] == [(1, 1), (1, 1)], "the two indexes of the join, in the one lane"
    made.rescale(3)
    made.push()
    assert len([e for e in made.events if isinstance(e, LanesRescaled)]) == 2, "no change, no event"


def test_queries_without_a_common_key_stay_in_one_lane() -> None:
    made = engine("AB", lanes=3)
    made.add_query("band", "SELECT A.k FROM A, B WHERE A.k < B.k WINDOW 5 SECONDS")
    made.add_query("key", "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS")
    made.push(both("AB", table([1, 2], k=[1, 2])))
    groups = sorted(lane.group for lane in made.manifest.lane_states)
    assert [group.startswith("key-") for group in groups] == [True] * 3 + [False]
    chunks = [ref for lane in made.manifest.lane_states[LaneId("single", 0)].states.values() for ref in lane.chunks]
    made.rescale(2)
    made.push()
    after = [ref for lane in made.manifest.lane_states[LaneId("single", 0)].states.values() for ref in lane.chunks]
    assert after == chunks, "and are left alone"
    assert len(made.manifest.lane_states) == 3
