"""Writes a checkpoint of a job in which values beyond the edges of types are NULL: `python -m tests.checkpoints.edges`.

Run it with the code of commit d5d4d46, the last before such a value made a dead letter.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa

import midstream as ms
from tests.checkpoints.kept import CHECKPOINT, archive, pack

NAME, VERSION = "edges", 5
SAVED, STEPS = 3, 7
SECOND = 1_000_000
WINDOW = "WINDOW 6 SECONDS"
QUERIES = {
    "filtered": f"SELECT A.u, B.u AS b FROM A, B WHERE A.k = B.k AND CAST(A.v AS UTINYINT) IS NULL {WINDOW}",
    "beside": f"SELECT A.u, B.u AS b FROM A, B WHERE A.k = B.k AND A.v > -9 {WINDOW}",
    "keyed": f"SELECT A.u, B.u AS b FROM A, B WHERE CAST(A.v AS UINTEGER) = CAST(B.v AS UINTEGER) {WINDOW}",
    "between": f"SELECT A.u, B.u AS b FROM A, B WHERE A.k = B.k AND round(A.t, -1) > B.v {WINDOW}",
    "three": f"SELECT A.u, C.u AS c FROM A, B, C WHERE A.k = B.k AND B.k = C.k AND A.w <> B.n {WINDOW}",
    "times": f"SELECT A.u, B.u AS b FROM A, B WHERE A.w = B.n {WINDOW}",
    "grouped": "SELECT CAST(v AS UTINYINT) AS g, COUNT(*) AS n FROM A GROUP BY CAST(v AS UTINYINT), "
    "TUMBLE(ts, INTERVAL 3 SECONDS)",
    "outer": f"SELECT A.u, B.u AS b FROM A LEFT JOIN B ON A.k = B.k AND CAST(B.v AS UTINYINT) > 1 {WINDOW}",
    "shown": "SELECT u, round(t, -1) AS r, CAST(v AS UTINYINT) AS c, CAST(w AS TIMESTAMP_NS) AS n, "
    "length(repeat(s, v * 600000)) AS l, CAST(d AS HUGEINT) AS h FROM A",
    "reader": "SELECT r.u, r.c, B.u AS b FROM shown r [RANGE 4 SECONDS], B [RANGE 4 SECONDS] WHERE r.c = B.v",
    "never": "SELECT u, CAST(w AS BOOLEAN) AS x FROM A WHERE CAST(CAST(ts AS DATE) AS TIME) IS NULL",
}
COLUMNS = "k BIGINT, v TINYINT, t TINYINT, d DOUBLE, s VARCHAR, w TIMESTAMP, n TIMESTAMP_NS, u BIGINT, ts TIMESTAMP"


def begun() -> ms.Engine:
    """An engine that has the queries, but for `never`."""
    engine = ms.Engine(lanes=2)
    for name in "ABC":
        engine.create_stream(name, COLUMNS, timestamp="ts", lateness="1 second")
    for name, sql in QUERIES.items():
        if name != "never":
            engine.add_query(name, sql)
    return engine


def rows(step: int) -> dict[str, pa.Table]:
    """What comes in a step: two seconds of rows, whose values are beyond the edges here and there."""
    found = {}
    for at, name in enumerate("ABC"):
        numbers = [7 * step + n + at for n in range(8)]
        years = [(2300 if n % 3 == 0 else 2020) - 1970 for n in numbers]
        moments = [(year * 365 * 86_400 + n % 2) * SECOND for year, n in zip(years, numbers, strict=True)]
        times = pa.array([2 * step * SECOND + n * SECOND // 4 for n in range(8)], pa.int64())
        found[name] = pa.table(
            {
                "k": pa.array([n % 3 for n in numbers], pa.int64()),
                "v": pa.array([n % 7 - 3 for n in numbers], pa.int8()),
                "t": pa.array([(n * 37) % 256 - 128 for n in numbers], pa.int8()),
                "d": [n / 2 for n in numbers],
                "s": ["ab"] * 8,
                "w": pa.array(moments, pa.int64()).cast(pa.timestamp("us")),
                "n": pa.array([1000 * (time % (200 * 365 * 86_400 * SECOND)) for time in moments]).cast(
                    pa.timestamp("ns")
                ),
                "u": pa.array([100 * step + n for n in range(8)], pa.int64()),
                "ts": times.cast(pa.timestamp("us")),
            }
        )
    return found


def make(target: Path) -> None:
    """Keep the engine as it is amid the run, and what it answers to its end."""
    engine, answers = begun(), dict[str, dict[int, pa.Table]]()
    engine.add_query("never", QUERIES["never"])
    with tempfile.TemporaryDirectory() as folder:
        for step in range(STEPS):
            if step == SAVED:
                engine.save(Path(folder) / CHECKPOINT)
            for query, table in engine.push(rows(step)).items():
                answers.setdefault(query, {})[step] = table
        metrics = engine.metrics()
        assert not engine.dead_letters
        notes = {name: metrics[name] for name in ("state_rows", "comparisons")}
        pack(target, Path(folder), answers, notes)


if __name__ == "__main__":
    make(archive(NAME, VERSION))
