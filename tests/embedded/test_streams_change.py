"""Streams come to a checkpoint and leave it: of an engine, and of a job file that is run again and again."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import midstream as ms
from midstream.cli.main import app
from midstream.model.events import StreamDropped
from tests.forked import run

DDL = "k BIGINT, ts TIMESTAMP"


def rows(*keys: int, second: int = 0) -> pa.Table:
    return pa.table({"k": list(keys), "ts": pa.array([second * 1_000_000] * len(keys), pa.timestamp("us"))})


def test_a_stream_leaves_an_engine_and_comes_back(tmp_path: Path) -> None:
    with ms.Engine(checkpoint=tmp_path) as engine:
        for name in "AB":
            engine.create_stream(name, DDL, timestamp="ts")
        engine.add_query("a", "SELECT A.k FROM A")
        engine.add_query("b", "SELECT B.k FROM B")
        engine.push({"A": rows(1), "B": rows(1, second=50)})
        for name, message in (("B", "it is read by b"), ("C", "there is no stream 'C'")):
            with pytest.raises(ms.QueryError, match=message):
                engine.drop_stream(name)
        engine.drop_query("b")
        engine.drop_stream("B")
        assert engine.push({"A": rows(2)})["a"].to_pylist() == [{"k": 2}]
        assert StreamDropped(1, "B") in engine.events and list(engine.manifest.streams) == ["A"]
        engine.create_stream("B", DDL, timestamp="ts")
        engine.add_query("pairs", "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 HOUR")
        assert engine.push({"A": rows(3), "B": rows(3, second=10)})["pairs"].to_pylist() == [{"k": 3}]
    with ms.Engine(checkpoint=tmp_path) as engine:
        assert list(engine.manifest.pushed_streams) == ["A", "B"]
        for name in "ABC":
            engine.create_stream(name, DDL, timestamp="ts")
        engine.add_query("c", "SELECT C.k FROM C")
        assert engine.push({"C": rows(7)})["c"].to_pylist() == [{"k": 7}]


JOB = """checkpoint = "ckpt"
{streams}
[queries.counts]
sql = "SELECT n FROM (SELECT k, COUNT(*) AS n FROM A GROUP BY k, TUMBLE(ts, INTERVAL 10 SECONDS)) AS x"
sink = {{ format = "parquet", path = "out/counts" }}
{queries}
"""
STREAM = """[streams.{name}]
format = "parquet"
path = "{name}"
schema = "k BIGINT, ts TIMESTAMP"
timestamp = "ts"
"""
PAIRS = """[queries.pairs]
sql = "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 HOUR"
sink = { format = "parquet", path = "out/pairs" }
"""


def test_a_job_file_names_more_streams_than_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in "AB":
        (tmp_path / name).mkdir()
        pq.write_table(rows(1, 2), tmp_path / name / "0.parquet")

    def once(names: str, queries: str = "") -> tuple[int, str]:
        streams = "".join(STREAM.format(name=name) for name in names)
        (tmp_path / "job.toml").write_text(JOB.format(streams=streams, queries=queries))
        done = CliRunner().invoke(app, ["run", "job.toml", "--engine", "embedded", "--once"])
        return done.exit_code, done.output + str(done.exception or "")

    assert once("A")[0] == 0
    pq.write_table(rows(2, second=20), tmp_path / "A" / "1.parquet")
    code, told = once("AB", PAIRS)
    assert code == 0 and "\ncounts: 2 rows" in told, told
    code, told = once("A")
    assert code != 0 and "this job has A" in told, told
    assert once("AB")[0] == 0, "the query is gone"
    dropped = CliRunner().invoke(app, ["drop", "ckpt", "B", "--stream"])
    assert dropped.exit_code == 0, dropped.output
    assert once("AB")[0] == 0, "it takes the command, and reads the stream no longer"
    assert once("A")[0] == 0
    done = run("midstream", "doctor", "ckpt")
    assert done.returncode == 0, done.stdout + done.stderr
