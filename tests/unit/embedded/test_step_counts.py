"""What steps of eleven fixed workloads cost, in counts that no machine changes: Python calls, chunks read and written,
and bytes written. They must not grow unnoticed. `MIDSTREAM_COUNTS=write pytest` of this file records
them anew, and the change is then to be seen in the file beside this one.
"""

from __future__ import annotations

import cProfile
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import midstream as ms
from midstream.model.manifest import ChunkRef
from midstream.runtime import checks
from midstream.state.chunk_store import Chunk, Unwritten
from midstream.state.memory_store import MemoryStore

RECORD = Path(__file__).with_name("step_counts.json")
MARGIN = 1.06
"""How much more than was recorded is let pass: versions of Arrow and numpy differ by a few calls."""

FILLING, COUNTED = 24, 16
"""Steps before the first that counts, and steps of which the mean does: states are compacted now and then."""


@dataclass(frozen=True)
class Workload:
    """Pushes of `rows` rows to each of `streams`, one a second, into queries over windows of `window` seconds."""

    streams: int = 3
    rows: int = 10
    window: int = 20
    lanes: int = 1
    make: Callable[[ms.Engine, Workload], None] = lambda engine, load: engine.add_query("q", load.chain())
    begin: Callable[[ms.Engine], None] = lambda engine: None
    fed: int | None = None

    def names(self) -> list[str]:
        return [f"S{number}" for number in range(self.streams)]

    def chain(self, window: int | None = None, more: str = "") -> str:
        first, *others = self.names()
        tied = " AND ".join(f"{first}.k = {other}.k" for other in others)
        size = self.window if window is None else window
        return f"SELECT {first}.k FROM {', '.join(self.names())} WHERE {tied}{more} WINDOW {size} SECONDS"

    def engine(self) -> ms.Engine:
        made = ms.Engine(lanes=self.lanes, seed=1, threads=1)
        for name in (*self.names(), "X", "Y"):
            made.create_stream(name, "k BIGINT, ts TIMESTAMP, v DOUBLE", timestamp="ts")
        self.make(made, self)
        # Looks at the plan count, reviews do not: they have a budget of their own, and come at a step or another.
        made.optimize(mode="suggest", review="1 hour")
        return made

    def push(self, number: int) -> dict[str, pa.Table]:
        random = np.random.default_rng([3, number])
        fed = self.names() if self.fed is None else self.names()[: self.fed]
        return {name: self._table(random, number) for name in fed}

    def _table(self, random: np.random.Generator, number: int) -> pa.Table:
        times = np.sort(random.integers(number * 1_000_000, (number + 1) * 1_000_000, self.rows))
        keys = random.integers(0, 50 * self.rows, self.rows)
        return pa.table({"k": keys, "ts": pa.array(times, pa.timestamp("us")), "v": random.random(self.rows)})


def _chain_of_queries(engine: ms.Engine, load: Workload) -> None:
    for number in range(20):
        engine.add_query(f"q{number}", load.chain(2 + number, f" AND S0.v > {number / 40}"))


def _many_that_wait(engine: ms.Engine, load: Workload) -> None:
    engine.add_query("q", load.chain())
    for number in range(100):
        engine.add_query(f"w{number}", f"SELECT X.k FROM X, Y WHERE X.k = Y.k AND X.v > {number} WINDOW 5 SECONDS")


def _band(engine: ms.Engine, load: Workload) -> None:
    engine.add_query("q", "SELECT S0.k FROM S0, S1 WHERE ABS(S0.v - S1.v) < 0.01 WINDOW 20 SECONDS")


def _aggregate(engine: ms.Engine, load: Workload) -> None:
    engine.add_query(
        "q", "SELECT S0.k, COUNT(*) AS n FROM S0, S1 WHERE S0.k = S1.k GROUP BY S0.k WINDOW 9 SECONDS EVERY 3 SECONDS"
    )


WORKLOADS: Mapping[str, Workload] = {
    "a small push": Workload(),
    "a short window": Workload(window=2),
    "10,000 rows": Workload(rows=3_333, window=4),
    "one row through 20 joins": Workload(streams=21, rows=1, fed=1),
    "16 lanes": Workload(lanes=16),
    "256 lanes": Workload(lanes=256),
    "20 queries share a chain": Workload(make=_chain_of_queries),
    "100 queries wait": Workload(make=_many_that_wait),
    "a band join": Workload(streams=2, make=_band),
    "groups at instants": Workload(streams=2, make=_aggregate),
    "amid a migration": Workload(window=60, begin=lambda engine: engine.migrate("q", "(S0 (S1 S2))", "parallel_track")),
}


def counts(load: Workload, patch: pytest.MonkeyPatch) -> dict[str, float]:
    """Count what steps do where no contracts are checked, as in production; return the means."""
    with checks.turned_on(False):
        return _counts(load, patch)


def _counts(load: Workload, patch: pytest.MonkeyPatch) -> dict[str, float]:
    engine, found = load.engine(), {"chunks_read": 0, "chunks_written": 0, "bytes_written": 0}
    for number in range(FILLING):
        engine.push(load.push(number))
    load.begin(engine)
    put, get = MemoryStore.put, MemoryStore.chunk

    def noted_put(store: MemoryStore, name: str, batch: pa.RecordBatch | Unwritten) -> tuple[str, int, int]:
        kept = put(store, name, batch)
        found["chunks_written"] += 1
        found["bytes_written"] += kept[1]
        return kept

    def noted_get(store: MemoryStore, ref: ChunkRef) -> Chunk:
        found["chunks_read"] += 1
        return get(store, ref)

    patch.setattr(MemoryStore, "put", noted_put)
    patch.setattr(MemoryStore, "chunk", noted_get)
    profile, given = cProfile.Profile(), [load.push(FILLING + number) for number in range(COUNTED)]
    engine.push(given[0])
    found = dict.fromkeys(found, 0)
    profile.enable()
    for one in given[1:]:
        engine.push(one)
    profile.disable()
    calls = sum(entry.callcount for entry in profile.getstats())
    engine.close()
    return {
        "calls": round(calls / (COUNTED - 1)),
        **{name: round(all_ / (COUNTED - 1), 1) for name, all_ in found.items()},
    }


@pytest.mark.parametrize("name", WORKLOADS)
def test_steps_cost_no_more_than_was_recorded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = counts(WORKLOADS[name], monkeypatch)
    recorded = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    if os.environ.get("MIDSTREAM_COUNTS") == "write":
        RECORD.write_text(json.dumps({**recorded, name: found}, indent=1) + "\n")
        return
    more = {
        what: (count, recorded[name][what]) for what, count in found.items() if count > MARGIN * recorded[name][what]
    }
    assert not more, f"counted and recorded: {more}"


def test_every_workload_is_recorded_and_no_other() -> None:
    assert json.loads(RECORD.read_text()).keys() == WORKLOADS.keys()
