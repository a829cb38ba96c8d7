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
[queries.groups]
sql = "SELECT upper(v) AS v FROM A [RANGE 1 DAY] GROUP BY upper(v) EVERY 1 SECOND"
sink = { format = "parquet", path = "groups" }
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
    found = [value for file in Path("groups").rglob("*.parquet") for value in pq.read_table(file)["v"].to_pylist()]
    assert set(found) == {"X", "Y", "Z"}


NESTED = """
checkpoint = "ckpt"
lanes = 2
[streams.A]
format = "parquet"
path = "in"
schema = "k BIGINT, ts TIMESTAMP, l ARRAY<STRING>, s STRUCT<a: STRING, b: ARRAY<STRING>>, m MAP<STRING, STRING>"
timestamp = "ts"
[queries.q]
sql = "SELECT k, l, s, m FROM A"
sink = { format = "parquet", path = "out" }
"""


@pytest.mark.parametrize("is_read", [False, True], ids=["by_spark", "in_workers"])
def test_so_are_those_within_lists_structs_and_maps(
    is_read: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drivers: ForkedDrivers
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("job.toml").write_text(NESTED.replace("ts TIMESTAMP", "ts STRING") if is_read else NESTED)
    odd = [texts(*[b"x"] * at, b"\xe9", *[b"x"] * (5 - at)) for at in range(5)]
    each = pa.array(range(7), pa.int32())
    times = pa.array([1_000_000] * 6, pa.timestamp("us", "UTC"))
    table = pa.table(
        {
            "k": range(6),
            "ts": pa.array(["1970-01-01T00:00:01"] * 6) if is_read else times,
            "l": pa.ListArray.from_arrays(each, odd[0]),
            "s": pa.StructArray.from_arrays([odd[1], pa.ListArray.from_arrays(each, odd[2])], ["a", "b"]),
            "m": pa.MapArray.from_arrays(each, odd[3], odd[4]),
        }
    )
    pq.write_table(table, "in/0.parquet")
    done = drivers.run("midstream", "run", "job.toml", "--once", "--cores", "2")
    assert done.returncode == 0, done.stderr
    assert [k for file in Path("out").rglob("*.parquet") for k in pq.read_table(file)["k"].to_pylist()] == [5]
    dead = [row for file in Path("ckpt").rglob("*dead*/**/*.parquet") for row in pq.read_table(file).to_pylist()]
    assert sorted(int(row["k"]) for row in dead) == [0, 1, 2, 3, 4], list(Path("ckpt").rglob("*"))
    assert all("cannot read" in row["_reason"] for row in dead)
