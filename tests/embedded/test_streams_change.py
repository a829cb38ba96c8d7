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
        for name, message in (("B", "while queries read it: b"), ("C", "there is no stream 'C'")):
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


WAS = "k BIGINT, v BIGINT, ts TIMESTAMP"
READ = {
    "a union": ["SELECT * FROM B UNION ALL SELECT * FROM C"],
    "a subquery": [
        "SELECT s.k, s.v FROM (SELECT * FROM B [RANGE 10 SECONDS] "
        "QUALIFY ROW_NUMBER() OVER (ORDER BY v DESC) <= 2 EVERY 5 SECONDS) AS s"
    ],
    "answers": ["SELECT * FROM B", "SELECT k, v FROM q0"],
}


def answers_as_declared(checkpoint: Path, queries: list[str], later: str) -> list[object]:
    """What the last query answers where an engine is opened again with streams of these columns."""
    found: list[object] = []
    for schema, seconds in ((WAS, (3,)), (later, (6, 12, 25))):
        with ms.Engine(checkpoint=checkpoint) as engine:
            for stream in "BC":
                engine.create_stream(stream, schema, timestamp="ts")
            for number, sql in enumerate(queries):
                engine.add_query(f"q{number}", sql)
            for second in seconds:
                row = {"k": 1, "v": 10 * second, "z": "z", "ts": f"2020-01-01 00:00:{second:02d}"}
                got = engine.push({stream: [row] for stream in "BC"})[f"q{len(queries) - 1}"]
                found += [(one["k"], one["v"]) for one in got.to_pylist()]
    return found


@pytest.mark.parametrize("queries", READ.values(), ids=READ)
@pytest.mark.parametrize("later", ["v BIGINT, k BIGINT, ts TIMESTAMP", f"z VARCHAR, {WAS}", f"{WAS}, z VARCHAR"])
def test_star_goes_by_the_columns_that_a_stream_has_now(tmp_path: Path, queries: list[str], later: str) -> None:
    assert answers_as_declared(tmp_path / "now", queries, later) == answers_as_declared(tmp_path / "as", queries, WAS)


@pytest.mark.parametrize("later", ["v BIGINT, k BIGINT, ts TIMESTAMP", f"{WAS}, z VARCHAR"])
def test_groups_that_star_stands_for_stay_as_they_are(tmp_path: Path, later: str) -> None:
    with pytest.raises(ms.CheckpointError, match="groups by the columns of"):
        answers_as_declared(tmp_path, ["SELECT * FROM B UNION SELECT * FROM C"], later)


def test_a_union_waits_until_all_its_streams_have_equal_columns(tmp_path: Path) -> None:
    wider, row = f"{WAS}, z VARCHAR", {"k": 1, "v": 2, "z": "z", "ts": "2020-01-02"}
    for ends, columns in enumerate([(WAS, WAS), (wider, WAS), (wider, wider)]):
        with ms.Engine(checkpoint=tmp_path) as engine:
            for stream, schema in zip("BC", columns, strict=True):
                engine.create_stream(stream, schema, timestamp="ts")
            if ends == 1:
                with pytest.raises(ms.QueryError, match="have different numbers of columns: 4, 3"):
                    engine.push({"B": [row]})
                continue
            engine.add_query("q", READ["a union"][0])
            assert [one["k"] for one in engine.push({"B": [row]})["q"].to_pylist()] == [1]


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
    assert code != 0 and "this job declares A" in told, told
    assert once("AB")[0] == 0, "the query is gone"
    dropped = CliRunner().invoke(app, ["drop", "ckpt", "B", "--stream"])
    assert dropped.exit_code == 0, dropped.output
    assert once("AB")[0] == 0, "it takes the command, and reads the stream no longer"
    assert once("A")[0] == 0
    done = run("midstream", "doctor", "ckpt")
    assert done.returncode == 0, done.stdout + done.stderr
