"""Files as people have them, read by Spark as the embedded engine reads them."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import midstream as ms
from midstream.checkpoint.folders import Folders
from midstream.checkpoint.reader import Checkpoint
from midstream.cli.main import main
from midstream.cli.spark_job import job_of
from midstream.embedded.job_run import FileJob
from midstream.pipeline.lost_rows import dead_files
from midstream.sql.job_file import parse_job

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
    assert ("the line is not a JSON object", "0.json", "rubbish") in map(eval, seen(tmp_path, "spark", "J")[1])


AHEAD = {
    "counted": "SELECT x.k AS a, y.k AS b FROM A x [ROWS 2], A y [ROWS 2] WHERE x.k = y.k",
    "grouped": "SELECT k, COUNT(*) AS n FROM A GROUP BY k, TUMBLE(ts, '1 second')",
    "filtered": "SELECT k FROM A WHERE k > 0",
}


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("queries", [["filtered"], [*AHEAD]])
def test_rows_far_ahead_are_dead_letters(spark: SparkSession, tmp_path: Path, texts: bool, queries: list[str]) -> None:
    """Whether Spark brings the rows or tasks read the files, filters them, counts them, or looks at times before."""
    (tmp_path / "in").mkdir()
    steps = [(0, 1), (1, 50 * 365 * 86_400, 2), (3, 86_403, 86_402, 0)]
    for number, seconds in enumerate(steps):
        times = pa.array([10**6 * second for second in seconds], pa.timestamp("us"))
        table = pa.table({"k": [*seconds], "ts": times.cast(pa.string()) if texts else times})
        pq.write_table(table, tmp_path / "in" / f"{number}.parquet")
        os.utime(tmp_path / "in" / f"{number}.parquet", (10**6 + number, 10**6 + number))
    own = spark.read.parquet(str(tmp_path / "in")).schema
    frame = spark.readStream.schema(own).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    job = ms.Job(spark, tmp_path / "ckpt", lanes=2)
    job.stream("A", frame, "ts", schema="k BIGINT, ts TIMESTAMP", lateness="1 hour", max_ahead="1 day")
    engine = ms.Engine()
    engine.create_stream("A", "k BIGINT, ts TIMESTAMP", "ts", lateness="1 hour", max_ahead="1 day")
    for name in queries:
        job.query(name, AHEAD[name], sink=ms.sinks.files(tmp_path / name))
        engine.add_query(name, AHEAD[name])
    job.start({"availableNow": True}).await_termination()
    for number in range(3):
        engine.push({"A": pq.read_table(tmp_path / "in" / f"{number}.parquet")})
    found = Checkpoint.open(f"{tmp_path}/ckpt").manifest()
    assert found.progress["A"] == engine.manifest.progress["A"]
    assert found.progress["A"].rejected == 2
    assert {n: q.counters.rows_out for n, q in found.queries.items()} == {
        n: q.counters.rows_out for n, q in engine.manifest.queries.items()
    }
    letters = [row for file in (tmp_path / "ckpt" / "dead_letters").rglob("*.parquet") for row in _read(file)]
    assert sorted(row["_reason"] for row in letters) == sorted(engine.dead_letters["A"]["_reason"].to_pylist())


def _read(file: Path) -> list[dict[str, Any]]:
    return list(pq.read_table(file, partitioning=None).to_pylist())


FOLDERS = {
    "bad": ("parquet", "k BIGINT, ts TIMESTAMP, v VARCHAR", 'on_bad_file = "skip"'),
    "types": ("parquet", "k BIGINT, ts TIMESTAMP, v VARCHAR", "options = { maxFilesPerTrigger = 1 }"),
    "bytes": ("csv", "k BIGINT, ts TIMESTAMP, v VARCHAR", 'options = { header = "true", nullValue = "-" }'),
    "uuids": ("parquet", "k UUID, ts TIMESTAMP, v VARCHAR", ""),
    "fields": ("parquet", "k STRUCT(ip VARCHAR, n BIGINT), ts TIMESTAMP, v VARCHAR", ""),
    "beside": ("parquet", "k BIGINT, ts TIMESTAMP, v VARCHAR", "options = { maxFilesPerTrigger = 1 }"),
    "lines": ("json", "k BIGINT, ts TIMESTAMP, v STRUCT(ip VARCHAR)", ""),
}


def folders(folder: Path) -> None:
    """Write files as people have them, those of a stream in the order of their names."""
    at, uuid = pa.array([0], pa.timestamp("us")), pa.array([bytes(range(16))], pa.uuid())
    plain = pa.table({"k": [1], "ts": at, "v": ["x"]})
    tables = {
        "bad": {"0": plain, "2": plain},
        "types": {
            "0": plain,
            "1": plain.set_column(0, "k", pa.array(["2"])),
            "2": pa.concat_tables([plain, plain, plain]).set_column(0, "k", pa.array(["3", "two", None])),
            "3": plain.set_column(0, "K", pa.array([4.0])),
            "4": plain.set_column(2, "v", pa.array([[1]])),
            "5": plain.set_column(0, "k", pa.array([{"a": 1}])),
            "6": plain.set_column(1, "ts", pa.nulls(1, pa.timestamp("us"))),
        },
        "uuids": {
            "0": plain.set_column(0, "k", uuid),
            "1": plain.set_column(0, "k", pa.array(["00010203-0405-0607-0809-0A0B0C0D0E0F"])),
            "2": plain.set_column(0, "k", pa.array(["nope"])),
        },
        "fields": {
            "0": plain.set_column(0, "k", pa.array([{"IP": "a", "N": 1}])),
            "1": plain.set_column(0, "k", pa.array([{"address": "a"}])),
        },
    }
    for name in FOLDERS:
        (folder / name).mkdir()
        for file, table in tables.get(name, {}).items():
            pq.write_table(table, folder / name / f"{file}.parquet")
    for number, within in enumerate(("", "v=part", "old"), 1):  # A partition beside a file, and another folder.
        (folder / "beside" / within).mkdir(exist_ok=True)
        pq.write_table(plain.select(["k", "ts"]), folder / "beside" / within / f"{number}.parquet")
    (folder / "bad" / "1.parquet").write_bytes((folder / "bad" / "0.parquet").read_bytes()[:-9])
    (folder / "bytes" / "0.csv").write_bytes(
        b"k,ts,v\n1,1970-01-01,na\xc3\xafve\n2,1970-01-01,caf\xe9\n3,1970-01-01,-\n"
    )
    (folder / "bytes" / "1.csv").write_bytes(b"\xef\xbb\xbfts,v,K\n1970-01-01,x,4\n")
    lines = [
        '{"K": 1, "ts": "1970-01-01", "v": {"IP": "a"}}',
        '{"K": 2, "k": 3, "ts": "1970-01-01"}',
        '{"Ts": "1970-01-01", "k": 4}',
        '{"k": 5, "Ts": "1970-01-01", "TS": "1970-01-01"}',
    ]
    (folder / "lines" / "0.json").write_text("\n".join(lines))
    for file in folder.rglob("*.*"):
        os.utime(file, (10**9 + int(file.stem),) * 2)


def test_files_as_people_have_them(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Unlike types, files that are none, damaged bytes, UUIDs, and names in another case, on both hosts."""
    folders(tmp_path)
    told = {}
    for host in ("spark", "embedded"):
        text = f'checkpoint = "{tmp_path}/{host}"\n'
        for name, (format, schema, more) in FOLDERS.items():
            text += f"""
                [streams.{name}]
                format = "{format}"
                path = "{tmp_path}/{name}"
                schema = "{schema}"
                timestamp = "ts"
                {more}
                [queries.of_{name}]
                sql = "SELECT k, v, ts FROM {name}"
                sink = {{ path = "{tmp_path}/{host}_{name}" }}"""
        if host == "spark":
            job_of(spark, parse_job(text)).start({"availableNow": True}).await_termination()
        else:
            with FileJob(parse_job(text)) as job:
                while job.step():
                    pass
        told[host] = {name: seen(tmp_path, host, name) for name in FOLDERS}
    for name in FOLDERS:
        assert told["spark"][name] == told["embedded"][name], name
    rows, letters = told["spark"]["types"]
    assert [eval(row, {"datetime": dt})["k"] for row in rows] == [1, 2, 3, 4, None]
    assert sorted(eval(letter)[1] for letter in letters) == ["2.parquet", "4.parquet", "5.parquet", "6.parquet"]
    for host in told:
        (dead,) = dead_files(Folders(f"{tmp_path}/{host}"), Checkpoint.open(f"{tmp_path}/{host}").report())
        assert (dead.stream, dead.step, dead.file) == ("bad", 0, f"{tmp_path}/bad/1.parquet"), host
        assert main(["status", f"{tmp_path}/{host}"]) == 0
        assert "dead files: skipped" in capsys.readouterr().out  # A long path is folded there, and not here:
        assert main(["status", f"{tmp_path}/{host}", "--json"]) == 0
        (shown,) = json.loads(capsys.readouterr().out)["dead_files"]
        assert (shown["stream"], shown["file"]) == ("bad", f"{tmp_path}/bad/1.parquet")
    assert len(told["spark"]["bad"][0]) == 2 and "1.parquet" in told["spark"]["bad"][1][0]
    assert ["'v': 'part'" in row for row in told["spark"]["beside"][0]] == [True, False]
    assert len(told["spark"]["uuids"][0]) == 2 and "nope" in told["spark"]["uuids"][1][0]
    assert "'ip': 'a'" in told["spark"]["fields"][0][0] and "address" in told["spark"]["fields"][1][0]
    assert len(told["spark"]["bytes"][0]) == 3 and "0.csv" in told["spark"]["bytes"][1][0]
    assert len(told["spark"]["lines"][0]) == 3 and "differ only by case" in told["spark"]["lines"][1][0]


def test_a_bad_file_stops_the_job_and_is_named(spark: SparkSession, tmp_path: Path) -> None:
    folders(tmp_path)
    text = f"""
        checkpoint = "{tmp_path}/ckpt"
        [streams.A]
        format = "parquet"
        path = "{tmp_path}/bad"
        schema = "k BIGINT, ts TIMESTAMP"
        timestamp = "ts"
        [queries.q]
        sql = "SELECT k FROM A"
        sink = {{ path = "{tmp_path}/out" }}"""
    with pytest.raises(ms.InputError, match=r"1\.parquet.*on_bad_file") as stopped:
        job_of(spark, parse_job(text)).start({"availableNow": True}).await_termination()
    assert stopped.value.remedy


def test_uuids_of_any_case_are_one(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "U").mkdir()
    text = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
    (tmp_path / "U" / "0.csv").write_text(f"{text},2024-01-01\n{text.upper()},2024-01-01\nnope,2024-01-01\n")
    job = f"""
        checkpoint = "{tmp_path}/ckpt"
        [streams.U]
        format = "csv"
        path = "{tmp_path}/U"
        schema = "k UUID, ts TIMESTAMP"
        timestamp = "ts"
        [queries.q]
        sql = "SELECT x.k FROM U x, U y WHERE x.k = y.k WINDOW 1 SECOND"
        sink = {{ path = "{tmp_path}/out" }}"""
    job_of(spark, parse_job(job)).start({"availableNow": True}).await_termination()
    found = [row["k"] for file in (tmp_path / "out").glob("step=*/*.parquet") for row in _read(file)]
    assert found == [text] * 4
    (letter,) = [row for file in (tmp_path / "ckpt" / "dead_letters").rglob("*.parquet") for row in _read(file)]
    assert letter["_reason"] == "column 'k': 'nope' is not a UUID"
