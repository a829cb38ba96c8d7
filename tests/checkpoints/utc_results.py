"""Writes a checkpoint of a job whose times of results are all in UTC: `python -m tests.checkpoints.utc_results`.

Run it with the code of commit b006925, the last before such a time had the type of its streams' timestamps.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa

import midstream as ms
from tests.checkpoints.kept import CHECKPOINT, archive, pack

NAME, VERSION = "utc_results", 4
SAVED, STEPS = 3, 7
SECOND = 1_000_000
BOUNDS = "window_start, window_end"
COUNTED = "SELECT COUNT(*) AS n FROM A [RANGE 4 SECONDS] EVERY 2 SECONDS"
QUERIES = {
    "pairs": "SELECT A.k, A.v, _ts AS t FROM A, B WHERE A.k = B.k WINDOW 4 SECONDS",
    "tumbling": f"SELECT k, COUNT(*) AS n, {BOUNDS}, _ts FROM A GROUP BY k, TUMBLE(ts, INTERVAL 3 SECONDS)",
    "sessions": f"SELECT k, COUNT(*) AS n, {BOUNDS}, _ts FROM A GROUP BY k, SESSION(ts, INTERVAL 1 SECOND)",
    "reader": "SELECT p.t, B.ts, _ts FROM pairs p [RANGE 3 SECONDS], B [RANGE 3 SECONDS] WHERE p.k = B.k",
    "within": f"SELECT x.n, x.result_time AS t, _ts FROM ({COUNTED}) AS x",
    "failing": "SELECT v // (v - 2) AS x, _ts FROM A",
}


def begun() -> ms.Engine:
    """An engine that has the queries."""
    engine = ms.Engine()
    for name in "AB":
        engine.create_stream(name, "k BIGINT, v BIGINT, ts TIMESTAMP", timestamp="ts", lateness="1 second")
    for name, sql in QUERIES.items():
        engine.add_query(name, sql)
    return engine


def rows(step: int) -> dict[str, pa.Table]:
    """What comes in a step: two seconds of rows, of which one is late."""
    moments = [2 * step * SECOND + n * SECOND // 4 for n in range(8)]
    moments[5] -= 5 * SECOND if step else 0
    times = pa.array(moments, pa.int64()).cast(pa.timestamp("us"))
    keys = [n * n % 3 for n in range(8)]
    return {
        "A": pa.table({"k": keys, "v": [n + step for n in range(8)], "ts": times}),
        "B": pa.table({"k": keys[::-1], "v": list(range(8)), "ts": times}),
    }


def make(target: Path) -> None:
    """Keep the engine as it is amid the run, and what it answers to its end."""
    engine, answers = begun(), dict[str, dict[int, pa.Table]]()
    with tempfile.TemporaryDirectory() as folder:
        for step in range(STEPS):
            if step == SAVED:
                engine.save(Path(folder) / CHECKPOINT)
            for query, table in engine.push(rows(step)).items():
                answers.setdefault(query, {})[step] = table
        outputs = {"late": engine.late["A"], "rejected": engine.dead_letters["failing"]}
        pack(target, Path(folder), {**answers, **{name: {STEPS: table} for name, table in outputs.items()}}, {})


if __name__ == "__main__":
    make(archive(NAME, VERSION))
