"""How chunks are read for samples: small ones together, each once, and what is remembered of them changes no figure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.estimates.shapes import SHAPES
from benchmarks.estimates.standing import Standing, standing
from benchmarks.estimates.streams import streams
from midstream.expr.expression import Column
from midstream.model.manifest import ChunkRef
from midstream.model.window import EVENT_TIME
from midstream.optimizer.samples.drawn import ChunkSamples
from midstream.optimizer.samples.living import SMALL, Living, neighbours
from midstream.optimizer.samples.sample_reading import samples_of
from midstream.optimizer.samples.samples import Samples

EVERY_SET = [frozenset(names) for names in ("A", "B", "C", "AB", "AC", "BC", "ABC", "ABCDEF")]


def sampled(job: Standing, budget: int, seed: int = 0, memory: ChunkSamples | None = None) -> Samples:
    return samples_of(job.manifest, job.observed, job.store, budget, seed, memory)


def job(shape: str, kind: str) -> Standing:
    """2,000 rows of each stream in chunks of 300."""
    return standing(SHAPES[shape].sql, streams(kind, 2000, 5), chunk=300)


def read_together_up_to(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("midstream.optimizer.samples.living.SMALL", rows)


@pytest.fixture(params=[0, SMALL], ids=["chunk by chunk", "together"])
def _read_together(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    read_together_up_to(request.param, monkeypatch)


@pytest.mark.parametrize("shape", ["one key", "keys and a band"])
def test_whether_chunks_are_read_together_changes_no_figure(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made, found = job(shape, "zipf 1.1"), []
    for rows in (0, 700, 1_000_000):
        read_together_up_to(rows, monkeypatch)
        samples = sampled(made, 300)
        found.append([samples.rows(subset) for subset in EVERY_SET])
    assert found[0] == found[1] == found[2]


def test_which_rows_of_a_key_are_kept_is_independent_of_the_uniform_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of one half of the rows are in another half, whether chunks are read as a whole or not; it is the same."""
    made, kept = job("one key", "uniform"), list[list[int]]()
    (lane, state), *_ = made.manifest.lane_states.items()
    spec = made.observed.rows[made.observed.labels["A"]]
    key = Column(pa.int64(), "A", "k")
    for rows in (0, SMALL):
        read_together_up_to(rows, monkeypatch)
        source = Living(
            "A", spec, [(str(lane), state.states[spec.id])], {"k": key}, (), {}, None, made.store, 0, ChunkSamples()
        )
        uniform, keyed = (drawn.valid_from[EVENT_TIME] for drawn in (source.rows(0.5), source.keyed([1.0], 0.5)))
        assert len(np.intersect1d(uniform, keyed)) / len(uniform) == pytest.approx(0.5, abs=0.05)
        kept.append(keyed.tolist())
    assert kept[0] == kept[1]


def test_small_chunks_that_follow_one_another_are_counted_together() -> None:
    sizes = [17_000, 10_000, 6_000, 500, SMALL, 1, 0]
    found = neighbours("lane", [ChunkRef(f"c{at}", rows, rows, 0) for at, rows in enumerate(sizes)])
    assert [one.names for one in found] == [("c0",), ("c1", "c2"), ("c3",), ("c4",), ("c5", "c6")]
    assert [one.is_small for one in found] == [False, True, True, True, True]


@pytest.mark.usefixtures("_read_together")
def test_a_memory_of_chunks_changes_no_figure() -> None:
    """Nor does it where it was filled for larger samples, has room for little, or was dropped; the seed does."""
    made, memory, whole = job("keys and a band", "zipf 1.1"), ChunkSamples(), frozenset("ABCDEF")
    alone = sampled(made, 300).rows(whole)
    for budget in (900, 300, 300):
        remembered = sampled(made, budget, 0, memory).rows(whole)
    assert remembered == alone
    memory.forget_all_but(frozenset())
    assert memory.drawn == {}
    assert sampled(made, 300, 0, memory).rows(whole) == alone
    assert sampled(made, 300, 0, ChunkSamples(most=2_500)).rows(whole) == alone
    assert sampled(made, 300, 1, memory).rows(whole) != alone


@pytest.mark.usefixtures("_read_together")
def test_each_chunk_is_opened_once() -> None:
    made, memory = job("one key", "uniform"), ChunkSamples()
    sampled(made, 300, 0, memory)
    before = dict(memory.drawn)
    sampled(made, 290, 0, memory)
    assert before and all(memory.drawn[at] is found for at, found in before.items())


@pytest.mark.parametrize("budget", [300, 5_000], ids=["some rows", "all rows"])
def test_at_the_next_review_only_new_chunks_are_opened(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made, memory, opened = job("one key", "uniform"), ChunkSamples(), list[str]()
    get = made.store.get
    monkeypatch.setattr(made.store, "get", lambda ref: opened.append(ref.name) or get(ref))
    lanes, new = {}, list[str]()
    for lane, state in made.manifest.lane_states.items():
        new += [listing.chunks[-1].name for listing in state.states.values()]
        states = {id: replace(listing, chunks=listing.chunks[:-1]) for id, listing in state.states.items()}
        lanes[lane] = replace(state, states=states)
    sampled(replace(made, manifest=replace(made.manifest, lane_states=lanes)), budget, 0, memory)
    assert opened and set(opened).isdisjoint(new)
    opened.clear()
    whole = sampled(made, budget, 0, memory).rows(frozenset("ABC"))
    assert sorted(opened) == sorted(new)
    assert whole == sampled(made, budget).rows(frozenset("ABC"))


@pytest.mark.parametrize("gone", [[0, 1], [1], [-1], [0, 2], []], ids=str)
def test_chunks_that_stay_are_taken_as_they_were_together(gone: list[int]) -> None:
    """Whichever chunks of the last review are gone: the oldest, one amid the others, the newest, or none."""
    made, memory = job("keys and a band", "zipf 1.1"), ChunkSamples()
    sampled(made, 5_000, 0, memory)
    lanes = {}
    for lane, state in made.manifest.lane_states.items():
        states = {}
        for id, listing in state.states.items():
            dropped = {len(listing.chunks) + at if at < 0 else at for at in gone}
            left = tuple(ref for at, ref in enumerate(listing.chunks) if at not in dropped)
            states[id] = replace(listing, chunks=left)
        lanes[lane] = replace(state, states=states)
    later = replace(made, manifest=replace(made.manifest, lane_states=lanes))
    remembered, fresh = sampled(later, 5_000, 0, memory), sampled(later, 5_000)
    assert memory.united
    assert [remembered.rows(subset) for subset in EVERY_SET] == [fresh.rows(subset) for subset in EVERY_SET]
    memory.forget_all_but(frozenset())
    assert memory.united == {}


def test_no_more_rows_are_remembered_than_there_is_room_for() -> None:
    """What was not looked at for longest goes first."""
    made, memory = job("one key", "uniform"), ChunkSamples(most=5_000)
    sampled(made, 300, 0, memory)
    assert 3_000 < sum(len(drawn) for _, drawn in memory.drawn.values()) <= 5_000
    first = next(iter(memory.drawn))
    assert memory.find(first) is not None and next(iter(memory.drawn)) != first
    memory.forget_all_but(frozenset(first[0]))
    assert list(memory.drawn) == [first]


def test_what_was_not_looked_at_for_longest_is_forgotten_first() -> None:
    drawn = next(iter(_filled().drawn.values()))
    memory = ChunkSamples(most=2 * len(drawn[1]))
    first, second, third = ((name,) for name in "abc")
    for names in (first, second):
        memory.keep((names, "", 1), drawn)
    assert memory.find((first, "", 1)) is drawn
    memory.keep((third, "", 1), drawn)
    assert [names for names, _, _ in memory.drawn] == [first, third]


def _filled() -> ChunkSamples:
    memory = ChunkSamples()
    sampled(job("one key", "uniform"), 300, 0, memory)
    return memory


def test_where_all_keys_are_frequent_no_row_counts_twice() -> None:
    data = {name: {**rows, "k": rows["k"] % 3} for name, rows in streams("uniform", 2000, 5).items()}
    found = sampled(standing(SHAPES["one key"].sql, data, chunk=300), 300).rows(frozenset("AB")).value
    counts = [np.bincount(data[name]["k"], minlength=3) for name in "AB"]
    assert found == pytest.approx(float((counts[0] * counts[1]).sum()), rel=0.3)
