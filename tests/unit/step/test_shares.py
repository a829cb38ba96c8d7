"""Many lanes are held in few shares: what stays of them, and that no answer depends on it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import midstream as ms
from midstream.checkpoint.manifest_file import manifest_of, written
from midstream.model.errors import CheckpointError
from midstream.model.events import LanesRescaled
from midstream.model.manifest import Manifest
from midstream.runtime.lane_key import is_single
from midstream.storage.files import FileStore
from tests.unit.building import both, table
from tests.unit.step.test_rescale import QUERIES

STEPS = 14


def begun(lanes: int, threads: int, checkpoint: Path | None = None) -> ms.Engine:
    made = ms.Engine(lanes=lanes, threads=threads, checkpoint=checkpoint, durable=False)
    for name in "ABC":
        made.create_stream(name, "j BIGINT, k BIGINT, s STRING, ts TIMESTAMP", timestamp="ts")
    for name, sql in QUERIES.items():
        made.add_query(name, sql)
    return made


def pushed(made: ms.Engine, step: int, found: dict[str, list[str]]) -> None:
    keys = [None if step % 3 == 1 else step % 2, step % 4]
    texts = [None if step % 4 == 1 else "ab"[step % 2], "a"]
    rows = table([step, step + 0.5], k=keys, j=[2 * step, 2 * step + 1], s=texts)
    for name, answer in made.push(both("ABC", rows)).items():
        found.setdefault(name, []).extend(map(str, answer.to_pylist()))


def answers(lanes: int, threads: int = 2, rescales: dict[int, int] | None = None) -> dict[str, list[str]]:
    made, found = begun(lanes, threads), dict[str, list[str]]()
    for step in range(STEPS):
        if step in (rescales or {}):
            made.rescale((rescales or {})[step])
        if step == 5:
            made.migrate("three", "(A (B C))")
        pushed(made, step, found)
    return {name: sorted(rows) for name, rows in found.items()}


def held(manifest: Manifest) -> set[int]:
    lanes = Counter(lane.group for lane in manifest.lane_states)
    return {count for group, count in lanes.items() if not is_single(group)}


def spread_chunks(manifest: Manifest) -> set[str]:
    states = [state for lane, state in manifest.lane_states.items() if not is_single(lane.group)]
    return {ref.name for state in states for listing in state.states.values() for ref in listing.chunks}


def test_however_many_lanes_and_threads_the_answers_are_those_of_one_lane() -> None:
    alone = answers(1)
    assert all(alone.values())
    for lanes, threads in ((9, 1), (256, 1), (256, 3), (4096, 2)):
        assert answers(lanes, threads) == alone, (lanes, threads)
    assert answers(3, 2, {3: 256, 6: 9, 8: 4, 10: 1000}) == alone


def test_lanes_beyond_the_threads_are_held_by_thread_and_few_by_themselves() -> None:
    for lanes, threads, shares in ((8, 1, 8), (9, 1, 1), (256, 3, 3), (12, 16, 12)):
        made = begun(lanes, threads)
        pushed(made, 0, {})
        assert made.manifest.lanes == lanes and made.manifest.shares == shares
        assert held(made.manifest) == {shares}
        made.close()


def test_another_number_of_many_lanes_moves_nothing() -> None:
    made = begun(256, 2)
    for step in range(3):
        pushed(made, step, {})
    before = spread_chunks(made.manifest)
    made.rescale(300)
    made.push()
    after = spread_chunks(made.manifest)
    assert after and after <= before and any(isinstance(event, LanesRescaled) for event in made.events)
    assert made.manifest.lanes == 300


def test_a_checkpoint_goes_on_in_another_number_of_threads(tmp_path: Path) -> None:
    whole = answers(1)
    found: dict[str, list[str]] = {}
    for step in range(STEPS):
        if step in (0, 4, 8):
            made = begun(256, 1 + step, tmp_path)
        if step == 5:
            made.migrate("three", "(A (B C))")
        pushed(made, step, found)
        assert held(made.manifest) == {step // 4 * 4 + 1 if step < 12 else 9}
        if step in (3, 7):
            made.close()
    made.close()
    assert {name: sorted(rows) for name, rows in found.items()} == whole


@pytest.mark.parametrize("shares", [-1, 300, "two"])
def test_a_manifest_of_impossible_shares_is_refused(shares: object) -> None:
    with pytest.raises(CheckpointError, match="shares"):
        manifest_of(written(Manifest(lanes=256, held_in=shares)), "here", "", FileStore("there"))  # type: ignore[arg-type]
