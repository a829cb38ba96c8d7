"""Invariant 5 on a store that fails, by seed: nothing lost, nothing doubled, nothing listed that is not there."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from midstream.state.store.files import FileStore
from tests.property.simulated import CHECKPOINT, Driver, SimulatedStorage, World, results, run

SEEDS = {"test": 2_000, "soak": 100_000, "quick": 100}[os.environ.get("MIDSTREAM_PROFILE", "test")]
SHARES = 8
OBJECTS = 4
"""On an object store everything but the sink is as on folders: one in so many seeds is drawn there."""


def check(seed: int, renames: bool) -> World:
    world = run(seed, renames)
    assert results(world) == list(range(world.inputs)), f"seed {seed}"
    log = Driver(world).log
    store = FileStore(SimulatedStorage(world, CHECKPOINT).at("store"))
    for manifest in log.kept():
        for lane in manifest.lane_states.values():
            for listing in lane.states.values():
                for chunk in listing.chunks:
                    assert store.get(chunk).num_rows == chunk.rows, f"seed {seed}, step {manifest.step}"
    newest = log.latest()
    assert newest is not None
    steps = [event["step"] for event in Driver(world).events.read(newest.time_line, newest.step)]
    assert steps == sorted(set(steps)), f"seed {seed}"
    return world


@pytest.mark.property
@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("renames", [True, False], ids=["folders", "objects"])
def test_no_row_is_lost_or_doubled(share: int, renames: bool) -> None:
    happened: Counter[str] = Counter()
    for seed in range(share, SEEDS if renames else SEEDS // OBJECTS, SHARES):
        happened.update(check(seed, renames).happened)
    least = {"killed", "killed after", "failed", "answer lost", "suspended", "went back"}
    assert least <= {what for what, times in happened.items() if times >= (20 if renames else 5)}, happened
