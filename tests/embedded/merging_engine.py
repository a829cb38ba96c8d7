"""An engine that merges chunks in nearly every step: `python -m tests.embedded.merging_engine FOLDER`.

A lane takes thousands of rows for many, so that most merges wait for others. The program pushes what the checkpoint has
not taken yet.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

import midstream as ms
from midstream.runtime.lane import Lane
from midstream.state.compaction import PACE

STREAMS, STEPS, ROWS, WINDOW = "ABC", 60, 60, 1_200_000
"""`ROWS` of each stream in each of the `STEPS`; a window in microseconds, of which a step takes 10,000."""

SMALL = PACE._replace(dying=64, merging=4_096)


def tables(step: int) -> dict[str, pa.Table]:
    """The rows of a step."""
    found, random = {}, np.random.default_rng([5, step])
    for name in STREAMS:
        times = np.sort(random.integers(10_000 * step, 10_000 * (step + 1), ROWS))
        keys, numbers = random.integers(0, 5_000, ROWS), np.arange(ROWS * step, ROWS * (step + 1))
        found[name] = pa.table({"k": keys, "u": numbers, "ts": pa.array(times, pa.timestamp("us", "UTC"))})
    return found


def the_engine(checkpoint: Path | None, *, dying: bool = True) -> ms.Engine:
    """The engine, the same whenever it is opened."""
    engine = ms.Engine(checkpoint=checkpoint)
    for name in STREAMS:
        engine.create_stream(name, "k BIGINT, u BIGINT, ts TIMESTAMP", timestamp="ts")
    window = f"[RANGE {WINDOW // 1_000 * (1 if dying else 100)} MILLISECONDS]"
    engine.add_query(
        "q",
        f"SELECT A.u AS a, B.u AS b, C.u AS c FROM A {window}, B {window}, C {window} WHERE A.k = B.k AND B.k = C.k",
        sink=checkpoint and ms.sinks.files(checkpoint.parent / "answers"),
    )
    return engine


def main(root: Path) -> None:
    """Push to the end."""
    with the_engine(root / "checkpoint") as engine:
        for step in range(engine.manifest.step + 1, STEPS):
            engine.push(tables(step))


if __name__ == "__main__":
    Lane.pace = SMALL
    main(Path(sys.argv[1]))
