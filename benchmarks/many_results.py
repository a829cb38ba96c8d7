"""What memory a step of many results takes: `python -m benchmarks.many_results [--quick]`.

A push into a join of two streams on a checkpoint, whose results go to Parquet files, in a process of its own each time:
returned as well, and not. The files are compared by count and by a sum of hashes. Required: not returned, 40 million
results take at most 1.5 times the memory of 10 million, beyond what a process has before its first push.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import midstream as ms

ROWS, MOST = 60_000, 1.5
KEYS = (360, 90)
"""Keys of the rows of a stream: 60,000 rows of each over 90 keys have 40 million pairs."""

SQL = "SELECT A.k, v, w, _ts FROM A, B WHERE A.k = B.k WINDOW 20 SECONDS"


def run(keys: int, rows: int, *, returns: bool) -> dict[str, float]:
    """Push once in this process; what it took, and what stands in the files."""
    random = np.random.default_rng(1)
    with tempfile.TemporaryDirectory(prefix="midstream-benchmarks-") as folder:
        with ms.Engine(checkpoint=f"{folder}/checkpoint", threads=1) as engine:
            tables = {}
            for stream, value in (("A", "v"), ("B", "w")):
                engine.create_stream(stream, f"k BIGINT, ts TIMESTAMP, {value} DOUBLE", timestamp="ts")
                times = pa.array(np.sort(random.integers(0, 10_000_000, rows)), pa.timestamp("us"))
                tables[stream] = pa.table(
                    {"k": random.integers(0, keys, rows), "ts": times, value: random.random(rows)}
                )
            engine.add_query("q", SQL, sink=ms.sinks.files(f"{folder}/out"))
            before, begun = _peak(), time.process_time()
            engine.push(tables, returns=returns)
            took, after = time.process_time() - begun, _peak()
        count, mark = _answer(Path(folder) / "out")
    return {"results": count, "mark": mark, "before": before, "after": after, "cpu": took}


def _peak() -> float:
    """The most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _answer(folder: Path) -> tuple[int, int]:
    """How many rows there are, and a sum of their hashes; read piece by piece."""
    count, mark = 0, 0
    for file in sorted(folder.rglob("*.parquet")):
        for batch in pq.ParquetFile(file).iter_batches(1 << 20, columns=["k", "v", "w"]):
            words = [np.asarray(column).view(np.uint64) for column in batch.columns]
            mixed = (words[0] * np.uint64(11)) ^ (words[1] * np.uint64(3)) ^ (words[2] * np.uint64(7))
            mark = (mark + int((mixed * np.uint64(0x9E3779B97F4A7C15)).sum())) % 2**64
            count += len(mixed)
    return count, mark


def apart(keys: int, rows: int, *, returns: bool) -> dict[str, float]:
    """The same in a process of its own."""
    given = [sys.executable, "-m", "benchmarks.many_results", "--one", str(keys), str(rows), str(int(returns))]
    found: dict[str, float] = json.loads(subprocess.run(given, check=True, capture_output=True, text=True).stdout)
    said = "returned" if returns else "not returned"
    print(
        f"{found['results']:,.0f} results, {said}: {found['after']:,.0f} MB, {found['before']:,.0f} before; "
        f"{found['cpu']:.1f} s of CPU",
        flush=True,
    )
    return found


def main() -> None:
    """Measure, and say what is required; exit code 1 where it is not met or files differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="show that it runs; its numbers mean nothing")
    parser.add_argument("--one", nargs=3, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        keys, rows, returns = options.one
        print(json.dumps(run(keys, rows, returns=bool(returns))))
        return
    rows, taken = ROWS // 10 if options.quick else ROWS, list[float]()
    for keys in KEYS:
        whole, pieces = (apart(keys, rows, returns=returns) for returns in (True, False))
        if (whole["results"], whole["mark"]) != (pieces["results"], pieces["mark"]):
            raise SystemExit("WRONG  the files differ")
        taken.append(pieces["after"] - pieces["before"])
    ratio = taken[1] / taken[0]
    print(f"{'PASS' if ratio <= MOST else 'FAIL'} 4 times the results: {ratio:.2f}, required at most {MOST:g}")
    raise SystemExit(0 if ratio <= MOST or options.quick else 1)


if __name__ == "__main__":
    main()
