"""States that are large: what a small step does not touch of them changes no answer and no count.

The tests have a lane take chunks of a single row for large.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import midstream as ms
from midstream.runtime.lane import Lane
from midstream.state.combinations import Deaths, Words
from midstream.state.compaction import PACE, Pace
from tests.drawing import FIFTHS, SOAK
from tests.property.sequences import Sequence, begun, drawn, made, run_embedded

SEEDS = range(500, 1500 if SOAK else 540)

TINY, BESIDE = Pace(dying=1, beside=0), Pace(dying=1, beside=2)
"""Every chunk is large; every chunk of so many times the rows of the step."""


@pytest.mark.property
@pytest.mark.timeout(7200)
def test_every_step_is_the_oracle_s(fifth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in SEEDS[fifth :: len(FIFTHS)]:
        monkeypatch.setattr(Lane, "pace", BESIDE if seed % 3 else TINY)
        run_embedded(drawn(seed))


@pytest.mark.property
def test_counts_are_those_of_small_states(fifth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in [*SEEDS[fifth :: len(FIFTHS)]][:4]:
        monkeypatch.setattr(Lane, "pace", PACE)
        small = counted(drawn(seed))
        for pace in (TINY, BESIDE):
            monkeypatch.setattr(Lane, "pace", pace)
            assert counted(drawn(seed)) == small, f"seed {seed}, {pace}"


@pytest.mark.parametrize(
    ("tied", "lateness"),
    [("A.k = B.k AND B.k = C.k", 0), ("A.k >= B.k AND A.k <= B.k + 1 AND B.s = C.s", 40)],
    ids=["hash", "band and texts"],
)
def test_small_steps_beside_large_states(tied: str, lateness: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for pace in (PACE, TINY, BESIDE):
        monkeypatch.setattr(Lane, "pace", pace)
        found.append(joined(tied, lateness))
    assert found[0] == found[1] == found[2]
    assert found[0][-1][1]["purged"] > 500


@pytest.mark.parametrize("rows", [60, 0], ids=["large steps", "small steps between"])
def test_a_chunk_is_large_beside_the_rows_of_a_step(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """To pass over the dead rows pays off only in a step that asks for few of the others."""
    looked, look = [], Deaths.of

    def noted(ends: Words, bound: int) -> Deaths:
        looked.append(len(ends))
        return look(ends, bound)

    monkeypatch.setattr(Deaths, "of", staticmethod(noted))
    monkeypatch.setattr(Lane, "pace", PACE._replace(dying=8))
    joined("A.k = B.k AND B.k = C.k", 0, rows=rows)
    assert bool(looked) == (not rows)
    assert min(looked, default=72) >= 72


def joined(tied: str, lateness: int, *, rows: int = 0) -> list[tuple[list[object], dict[str, object]]]:
    """The results of each step, of few rows in most or of as many as are given, and what was counted until then."""
    engine, random = ms.Engine(), np.random.default_rng(3)
    for name in "ABC":
        engine.create_stream(name, "k BIGINT, s STRING, ts TIMESTAMP", timestamp="ts", lateness=f"{lateness} ms")
    windows = ", ".join(f"{name} [RANGE 300 MILLISECONDS]" for name in "ABC")
    engine.add_query("q", f"SELECT A.k, A.ts, B.ts AS b, C.ts AS c FROM {windows} WHERE {tied}")
    found = []
    for step in range(110):
        given = {}
        for name in "ABC":
            count = rows or (60 if step % 50 == 7 else 3)
            times = 20_000 * step + random.integers(-1_000 * lateness, 20_000, count)
            keys = random.integers(0, 40 * max(rows, 1), count)
            given[name] = pa.table({"k": keys, "s": [f"s{k % 9}" for k in keys.tolist()],
                                    "ts": pa.array(times + 10**9, pa.timestamp("us", "UTC"))})  # fmt: skip
        answers = engine.push(given)["q"].to_pylist()
        counts = {name: value for name, value in engine.metrics().items() if name != "time"}
        found.append((answers, counts))
    return found


def counted(sequence: Sequence) -> list[object]:
    """What was counted, and how many rows live, step by step."""
    engine, found = begun(sequence.case, sequence.lanes), list[object]()
    for step, tables in enumerate(sequence.case.steps):
        for change in sequence.changes:
            if change.step == step:
                engine = made(engine, change)
        engine.push(dict(tables))
        found.append({name: value for name, value in engine.metrics().items() if name != "time"})
    return found
