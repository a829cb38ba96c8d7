"""Files as people have them, read by Spark as the embedded engine reads them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import midstream as ms
from midstream.checkpoint.reader import Checkpoint
from midstream.cli.job import job_of
from midstream.engine.job_run import FileJob
from midstream.language.job_file import parse_job

STREAMS = {"C": ("csv", 'options = { header = "true" }'), "J": ("json", ""), "P": ("parquet", "")}


def toml(folder: Path, checkpoint: str) -> str:
    text = f'checkpoint = "{folder}/{checkpoint}"\n'
    for name, (format, more) in STREAMS.items():
        text += f"""
            [streams.{name}]
            format = "{format}"
            path = "{folder}/{name}"
            schema = "k BIGINT, ts TIMESTAMP, v VARCHAR"
            timestamp = "ts"
            {more}
            [queries.of_{name}]
            sql = "SELECT {name}.k, {name}.v, {name}.ts FROM {name}"
            sink = {{ path = "{folder}/{checkpoint}_{name}" }}"""
    return text


def seen(folder: Path, checkpoint: str, name: str) -> tuple[list[Any], list[Any]]:
    """The results of a stream's query, and the reasons and files of its dead letters."""
    files = (folder / f"{checkpoint}_{name}").glob("step=*/*.parquet")
    found = [row for file in files for row in pq.read_table(file, partitioning=None).to_pylist()]
    dead = (folder / checkpoint / "dead_letters" / name).rglob("*.parquet")
    letters = [row for file in dead for row in pq.read_table(file, partitioning=None).to_pylist()]
    told = [(row["_reason"], Path(row["_file"]).name, row.get("_corrupt_record")) for row in letters]
    return sorted(map(str, found)), sorted(map(str, told))


def test_both_hosts_read_them_alike(spark: SparkSession, tmp_path: Path) -> None:
    for name in STREAMS:
        (tmp_path / name).mkdir()
    (tmp_path / "C" / "0.csv").write_text("v,extra,ts,K\nx,7,2024-01-01,1\ny,7,2024-01-01,two\n")
    (tmp_path / "C" / "1.csv").write_bytes(b"")
    (tmp_path / "C" / "2.csv.gz").write_bytes(gzip.compress(b"v,extra,ts,K\nz,,2024-01-01,3\n"))
    (tmp_path / "J" / "0.json").write_text('{"k": 1, "ts": "2024-01-01", "v": "x"}\nrubbish\n{"k": 2}\n')
    at = pa.array([0], pa.timestamp("us"))
    plain = pa.table({"k": [1], "ts": at, "v": ["x"]})
    pq.write_table(plain, tmp_path / "P" / "0.parquet")
    pq.write_table(plain.set_column(1, "ts", at.cast(pa.timestamp("us", "UTC"))), tmp_path / "P" / "1.parquet")
    pq.write_table(plain.set_column(2, "v", pa.array(["x"]).dictionary_encode()), tmp_path / "P" / "2.parquet")
    job_of(spark, parse_job(toml(tmp_path, "spark"))).start({"availableNow": True}).await_termination()
    with FileJob(parse_job(toml(tmp_path, "embedded"))) as job:
        while job.step():
            pass
        assert Checkpoint.open(f"{tmp_path}/spark").manifest().streams == job.engine.manifest.streams, (
            "TIMESTAMP has one meaning"
        )
    for name in STREAMS:
        assert seen(tmp_path, "spark", name) == seen(tmp_path, "embedded", name)
    assert len(seen(tmp_path, "spark", "P")[0]) == 3
    assert ("the line is no JSON object", "0.json", "rubbish") in map(eval, seen(tmp_path, "spark", "J")[1])


def test_a_header_in_another_order_later_stops_and_names_the_file(spark: SparkSession, tmp_path: Path) -> None:
    for name in STREAMS:
        (tmp_path / name).mkdir()
    (tmp_path / "C" / "0.csv").write_text("k,ts,v\n1,2024-01-01,x\n")
    run = job_of(spark, parse_job(toml(tmp_path, "spark"))).start({"availableNow": True})
    run.await_termination()
    job = job_of(spark, parse_job(toml(tmp_path, "spark")))
    (tmp_path / "C" / "1.csv").write_text("ts,k,v\n2024-01-01,1,x\n")
    with pytest.raises(ms.SparkError, match=r"(?s)header.*1\.csv"):
        job.start({"availableNow": True}).await_termination()
