"""A job file over folders of three formats, and what is in them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

JOB = """
checkpoint = "ckpt"
lanes = 2
[streams.A]
format = "parquet"
path = "in/A"
timestamp = "ts"
options = { maxFilesPerTrigger = 1 }
[streams.B]
format = "csv"
path = "in/B"
timestamp = "ts"
[streams.C]
format = "json"
path = "in/C/*.json"
schema = "k BIGINT, ts TIMESTAMP, v DOUBLE"
timestamp = "ts"
lateness = "1 hour"
[queries.triples]
sql = "SELECT A.k, A.v, B.v AS w FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 20 SECONDS"
plan = "((A B) C)"
sink = { format = "parquet", path = "out" }
"""


def rows(keys: range) -> pa.Table:
    times = pa.array([1_000_000 * k for k in keys], pa.timestamp("us"))
    return pa.table({"k": list(keys), "ts": times, "v": [k / 2 for k in keys]})


def as_lines(table: pa.Table) -> str:
    return "\n".join(json.dumps({**row, "ts": row["ts"].isoformat()}) for row in table.to_pylist())


def fill(folder: Path, files: int) -> None:
    """The job file and its folders: five rows in each of A's files, which arrive one after the other, and all rows in
    one file of B and of C.
    """
    for stream in "ABC":
        (folder / "in" / stream).mkdir(parents=True)
    for number in range(files):
        file = folder / "in" / "A" / f"{9 - number}.parquet"  # Their names say nothing of their arrival.
        pq.write_table(rows(range(5 * number, 5 * number + 5)), file)
        os.utime(file, (1_000_000 + number, 1_000_000 + number))
    every = rows(range(5 * files))
    pyarrow.csv.write_csv(every, folder / "in" / "B" / "all.csv")
    (folder / "in" / "C" / "all.json").write_text(as_lines(every))
    (folder / "job.toml").write_text(JOB)
