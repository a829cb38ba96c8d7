"""What a process remembers of states, and leaves alone, changes nothing of what a step makes of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from midstream.commands.add_query import AddQuery
from midstream.commands.migrate import Migrate
from midstream.model.command import Command
from midstream.model.manifest import Manifest
from midstream.state.memory_store import MemoryStore
from midstream.step.fold import step
from midstream.units.unit_step import UnitStep
from tests.unit.building import schemas, table

QUERIES = {
    "short": "SELECT A.j AS a, B.j AS b, C.j AS c FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 3 SECONDS",
    "long": "SELECT A.j AS a, B.j AS b, C.j AS c FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 7 SECONDS",
    "band": "SELECT A.j AS a, D.j AS d FROM A, D WHERE A.v < D.v WINDOW 4 SECONDS",
    "rows": "SELECT A.j AS a, B.j AS b FROM A [ROWS 5], B [RANGE 3 SECONDS] WHERE A.k = B.k",
    "count": "SELECT C.k, COUNT(*) AS n FROM C, D WHERE C.k = D.k GROUP BY C.k WINDOW 3 SECONDS EVERY 1 SECOND",
}


def forgetful(manifest: Manifest) -> Manifest:
    """The manifest as another process has it, which has not read any chunk."""
    lanes = {
        name: replace(lane, states={id: replace(listing) for id, listing in lane.states.items()})
        for name, lane in manifest.lane_states.items()
    }
    return replace(manifest, lane_states=lanes)


def rows(random: np.random.Generator, number: int) -> dict[str, pa.Table]:
    """Rows of some of the streams, of others none; now and then of none at all."""
    found = {}
    for stream in "ABCD":
        if random.random() < 0.5:
            count = int(random.integers(1, 4))
            columns = {"k": random.integers(0, 3, count).tolist(), "v": random.random(count).tolist()}
            times = [number + 0.1 * at for at in range(count)]
            found[stream] = table(times, j=range(count), s=["x"] * count, **columns)
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sharing", ["off", "auto"])
def test_a_step_is_the_same_whether_states_rest_and_are_remembered_or_are_read(seed: int, sharing: str) -> None:
    random = np.random.default_rng(seed)
    remembered = read = Manifest(streams=schemas("ABCD"), sharing=sharing)
    stores = MemoryStore(), MemoryStore()
    for number in range(30):
        commands: list[Command] = [AddQuery(name, sql) for name, sql in QUERIES.items()] if number == 0 else []
        if number == 15:
            commands = [Migrate("short", "(A (B C))", "parallel_track", {})]
        given = rows(random, number)
        one = step(remembered, given, commands, stores[0])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(UnitStep, "resting", lambda _: None)
            other = step(forgetful(read), given, commands, stores[1])
        assert one.manifest == other.manifest
        assert {name: t.to_pylist() for name, t in one.results.items()} == {
            name: t.to_pylist() for name, t in other.results.items()
        }
        assert one.events == other.events
        remembered, read = one.manifest, other.manifest
    assert any(listing.known for lane in remembered.lane_states.values() for listing in lane.states.values())
