"""Invariant 5 on a store that fails, by seed: nothing lost, nothing doubled, nothing listed that is not there."""

from __future__ import annotations

import zlib
from collections import Counter
from unittest.mock import patch

import pytest

from midstream.checkpoint import manifest_file
from midstream.state.chunk_store import file_of
from tests.drawing import FIFTHS, SOAK
from tests.property.simulated import CHECKPOINT, Driver, results, run
from tests.property.simulated_store import SimulatedLibrary, World

SEEDS = 100_000 if SOAK else 2_000
OBJECTS = 2
"""One in so many seeds is drawn on an object store too."""

EVERYWHERE = {"killed", "killed after", "failed", "answer lost", "suspended", "went back", "repeated", "done again"}
ONLY_HERE = {
    False: {"torn"},
    True: {"given up", "killed on the way", "overtaken", "arrived late", "arrived in vain"},
}


def check(seed: int, objects: bool) -> World:
    world = run(seed, objects)
    with patch("midstream.storage.objects._library", lambda: SimulatedLibrary):
        _check(world, f"seed {seed}")
    return world


def _check(world: World, label: str) -> None:
    assert results(world) == list(range(world.inputs)), label
    driver = Driver(world)
    for manifest in driver.log.kept():
        for lane in manifest.lane_states.values():
            for listing in lane.states.values():
                for chunk in listing.chunks:
                    data = world.files.get(f"{CHECKPOINT}/store/{file_of(chunk.name)}", b"")
                    assert zlib.crc32(data) == chunk.checksum, f"{label}, step {manifest.step}, {chunk.name}"
    newest = driver.log.latest()
    assert newest is not None
    steps = [event["step"] for event in driver.events.read(newest.time_line, newest.step)]
    assert steps == sorted(set(steps)), label
    given = [command.lanes for _, command in driver.commands.after(0)]
    assert len(given) == len(set(given)) and set(world.accepted) <= set(given), f"{label}: commands {given}"


@pytest.mark.property
@pytest.mark.parametrize("objects", [False, True], ids=["folders", "objects"])
def test_no_row_is_lost_or_doubled(fifth: int, objects: bool) -> None:
    happened: Counter[str] = Counter()
    for seed in range(fifth, SEEDS // OBJECTS if objects else SEEDS, len(FIFTHS)):
        happened.update(check(seed, objects).happened)
    least = 3 if objects else 20
    assert EVERYWHERE | ONLY_HERE[objects] <= {what for what, times in happened.items() if times >= least}, happened


@pytest.mark.property
@pytest.mark.parametrize("objects", [False, True], ids=["folders", "objects"])
def test_nor_where_manifests_are_written_by_what_differs(
    fifth: int, objects: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest_file, "LEAST", 1)
    for seed in range(fifth, SEEDS // 20, len(FIFTHS)):
        check(seed, objects)
