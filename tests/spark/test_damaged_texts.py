"""Files with texts that are not UTF-8: their rows are dead letters."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.forked_drivers import ForkedDrivers
from tests.unit.cli.test_process import midstream
from tests.unit.step.test_damaged_texts import texts

JOB = """
checkpoint = "ckpt"
lanes = 2
[streams.A]
format = "parquet"
path = "in"
schema = "k BIGINT, ts TIMESTAMP, v STRING"
timestamp = "ts"
options = { maxFilesPerTrigger = 1 }
[queries.q]
sql = "SELECT k, v FROM A"
sink = { format = "parquet", path = "out" }
"""


def test_the_row_is_a_dead_letter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drivers: ForkedDrivers) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("job.toml").write_text(JOB)
    for number, values in enumerate([texts(b"x", b"caf\xe9"), pa.array(["y", "z"]), pa.array([b"b", b"\xff"])]):
        times = pa.array([number, number], pa.timestamp("s")).cast(pa.timestamp("us", "UTC"))
        pq.write_table(pa.table({"k": [1, 2], "ts": times, "v": values}), f"in/{number}.parquet")
        os.utime(f"in/{number}.parquet", (1e9 + number,) * 2)
    done = drivers.run("midstream", "run", "job.toml", "--once", "--cores", "2")
    assert done.returncode == 0, done.stderr
    assert midstream("doctor", "ckpt").returncode == 0
    found = [value for file in Path("out").rglob("*.parquet") for value in pq.read_table(file)["v"].to_pylist()]
    assert sorted(found) == ["b", "x", "y", "z"]
